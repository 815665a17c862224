"""The trainings of a bucket: list, show, watch, delete. All their state is in S3."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polarlambda.connect import Place
from polarlambda.errors import BadInput

if TYPE_CHECKING:
    from blockstore.training_records import TrainingSpec
    from blockstore.trainings import Facts, TrainingStore

NOT_BEGUN = "planned"


@dataclass(frozen=True)
class Progress:
    """How far a training is: state ("planned" before its process said anything), message, the facts
    of its last checkpoint (None without one), and that checkpoint's age in seconds."""

    spec: TrainingSpec
    state: str
    message: str
    last: Facts | None
    age: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        from dataclasses import asdict

        return {
            "spec": self.spec.to_json(),
            "state": self.state,
            "message": self.message,
            "last": asdict(self.last) if self.last else None,
            "age": self.age,
        }


def list_trainings(**place: str | None) -> list[Progress]:
    """All trainings, oldest first. ``place``: see `polarlambda.connect.Place`.

    Cost: two GETs, a HEAD and a listing per training.
    """
    from concurrent.futures import ThreadPoolExecutor

    from blockstore.errors import ObjectMissing
    from blockstore.trainings import TrainingStore, list_trainings

    bucket = Place(**place).open_bucket()

    def look(training: str) -> Progress | None:
        try:
            return _progress(TrainingStore(bucket, training))
        except ObjectMissing:  # labels without a spec: it never began, or is being deleted
            return None

    with ThreadPoolExecutor(16, thread_name_prefix="trainings") as pool:
        found = pool.map(look, list_trainings(bucket))
        return [progress for progress in found if progress is not None]


def show_training(training: str, **place: str | None) -> dict[str, Any]:
    """What was asked, how it is going, and the history, as plain JSON.

    Raises `ObjectMissing` for no such training. Cost: a HEAD for every iteration.
    """
    from dataclasses import asdict

    from polarlambda.training.checkpoints import load_history

    store = _store(training, place)
    shown = _progress(store).to_json()
    shown["history"] = [asdict(facts) for facts in load_history(store)]
    return shown


def watch_training(
    training: str,
    *,
    every: float = 0.5,
    sleep: Callable[[float], None] = time.sleep,
    **place: str | None,
) -> Iterator[Progress]:
    """How far a training is, whenever that changes, until it has ended.

    Looks every ``every`` seconds. Raises `ObjectMissing` when there is no such training. One whose
    process died does not end by itself: `resume_training` goes on with it.
    """
    store = _store(training, place)
    last: tuple[str, int] | None = None
    while True:
        progress = _progress(store)
        now = (progress.state, progress.last.iteration if progress.last else -1)
        if now != last:
            last = now
            yield progress
        if progress.state not in ("running", NOT_BEGUN):
            return
        sleep(every)


def load_theta(training: str, **place: str | None) -> Any:
    """The parameters a training ended with, (p,) or (p, k); raises `ObjectMissing`."""
    return _store(training, place).get_theta()


def delete_training(training: str, *, force: bool = False, **place: str | None) -> tuple[int, int]:
    """Delete a training and the runs of its products; returns (objects, runs).

    Raises `ObjectMissing` when there is none, `BadInput` while it is running, unless ``force``:
    its process would go on and write into what was deleted.
    """
    from blockstore.errors import ObjectMissing
    from blockstore.runs import delete_run
    from blockstore.trainings import delete_training
    from polarlambda.training.checkpoints import load_history

    store = _store(training, place)
    try:
        progress = _progress(store)
    except ObjectMissing:
        return delete_training(store.bucket, training), 0
    if progress.state == "running" and not force:
        raise BadInput(
            f"training {training} has not ended: stop its process (Ctrl-C), or, if that is dead, "
            "delete it with --force"
        )
    objects = runs = 0
    for facts in load_history(store):
        for run in facts.runs:
            try:
                objects += delete_run(store.bucket, run)
                runs += 1
            except ObjectMissing:  # expired, or deleted before
                continue
    return objects + delete_training(store.bucket, training), runs


def _progress(store: TrainingStore) -> Progress:
    from datetime import UTC, datetime

    from blockstore.errors import ObjectMissing

    spec = store.load_spec()
    try:
        status = store.get_status()
        state, message = status.state, status.message
    except ObjectMissing:
        state, message = NOT_BEGUN, ""
    checkpoints = store.list_checkpoints()
    if not checkpoints:
        return Progress(spec, state, message, None, None)
    latest = max(checkpoints)
    age = (datetime.now(UTC) - checkpoints[latest].last_modified).total_seconds()
    return Progress(spec, state, message, store.get_facts(latest), max(0.0, age))


def _store(training: str, place: dict[str, str | None]) -> TrainingStore:
    from blockstore.training_keys import validate_training
    from blockstore.trainings import TrainingStore

    return TrainingStore(Place(**place).open_bucket(), validate_training(training))
