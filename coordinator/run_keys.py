"""The keys of a run, listed page by page at the same time where they are more than one page.

A page of a listing has 1,000 keys and names where the next one begins, so that thousands of answers
would be listed one page after the other, again and again. A worker's number is part of its key: the
answers of a thousand workers have a prefix of their own, these prefixes are listed side by side,
and one whose answers are all here is not listed any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from blockstore import keys
from blockstore.runs import RunStore

__all__ = ["RunKeys"]

PAGE = 1_000  # keys of a page, and answers below a prefix


class RunKeys:
    """Looks at what there is below runs/<run>/ that somebody may be waiting for.

    Parameters
    ----------
    store : the run's objects
    workers : N; objects : objects that each worker writes
    """

    def __init__(self, store: RunStore, workers: int, objects: int) -> None:
        self._store = store
        run = store.run
        self._prefixes = [keys.run_prefix(run)]
        self._answers: list[tuple[str, int]] = []  # prefix, objects that may come
        if workers * objects > PAGE:
            self._prefixes = [keys.errors_prefix(run), keys.stop_prefix(run)]
            last = (workers - 1) // PAGE
            for thousand in range(last + 1):
                count = min(PAGE, workers - thousand * PAGE)
                self._answers.append((keys.results_prefix(run, thousand), count * objects))
        self._complete: dict[str, list[str]] = {}

    def look(
        self,
        seen: set[str],
        spread: Callable[[Callable[[str], list[str]], list[str]], Iterable[list[str]]],
    ) -> list[str]:
        """The keys, without those below prefixes all of whose answers are in `seen`.

        `spread` is a `map` that may do several at a time. Raises what the bucket raises.
        """
        open_prefixes = [
            prefix
            for prefix, _ in self._answers
            if prefix not in self._complete or not seen.issuperset(self._complete[prefix])
        ]
        asked = [*self._prefixes, *open_prefixes]
        found = list(spread(self._list, asked))
        expected = dict(self._answers)
        for prefix, names in zip(asked, found, strict=True):
            if prefix in expected and len(names) == expected[prefix]:
                self._complete[prefix] = names
        return [name for names in found for name in names]

    def _list(self, prefix: str) -> list[str]:
        return [info.key for info in self._store.bucket.list(prefix)]
