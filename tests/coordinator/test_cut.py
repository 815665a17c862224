"""How products are cut: every row once, parts as S3 wants them; and listings in segments."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from blockstore import keys
from blockstore.documents import Fields
from coordinator import listing
from coordinator.cut import Cut, PartRule, cut_product
from coordinator.layout import Layout
from tests.memory_bucket import MemoryBucket

RUN = keys.new_run_id(1_700_000_000_000, bytes(10))


@st.composite
def layouts(draw):
    down, across = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    height, width = draw(st.integers(1, 40)), draw(st.integers(1, 5))
    rows = draw(st.integers(max(1, (down - 1) * height), down * height))
    columns = draw(st.integers(max(1, (across - 1) * width), across * width))
    return Layout((rows, columns), down, across, height, width)


@given(layouts(), st.integers(1, 50), st.integers(1, 400), st.integers(3, 400), st.booleans())
def test_every_row_is_in_one_part_and_every_part_is_allowed(layout, rows, least, most, regular):
    rule = PartRule(1 if regular else least, most, regular)
    found = cut_product(layout, 4, rows, rule)
    assert Cut.from_fields(Fields(found.to_json(), "cut", ValueError)) == found
    assert [row for part in found.parts for row in range(*part)] == list(range(layout.rows))
    window_rows = [row for window in found.windows for row in range(*window)]
    assert window_rows == list(range(layout.block_rows))
    assert all(b - a <= max(rows, 1) or len(found.windows) == 1 for a, b in found.windows)
    sizes = [(b - a) * layout.columns * 4 for a, b in found.parts]
    if regular:
        assert len(set(sizes[:-1])) <= 1 and sizes[-1] <= sizes[0]
    else:
        assert len(found.parts) <= most and min(sizes[:-1], default=least) >= least
    if found.direct:
        parts = [p for w in range(len(found.windows)) for p in found.parts_of(w, layout.block_rows)]
        assert sorted(parts) == list(range(len(found.parts)))
        if len(found.windows) > 1:
            assert all(
                a // layout.block_rows == (b - 1) // layout.block_rows for a, b in found.parts
            )


@given(st.integers(1, 40), st.integers(1, 3), st.integers(1, 9), st.data())
def test_listings_in_segments_show_everything_that_is_new(workers, objects, segment, data):
    bucket = MemoryBucket()
    every = {keys.part_key(RUN, w, g, g): w for w in range(workers) for g in range(objects)}
    there = data.draw(st.sets(st.sampled_from(sorted(every))))
    others = [keys.run_key(RUN), keys.stop_key(RUN, 1), keys.error_key(RUN, 0, 1)]
    for key in (*there, *others):
        bucket.put(key, b"x")
    with ThreadPoolExecutor(4) as pool, listing_of(segment):
        looks = listing.RunListing(bucket, RUN, workers, objects, pool)
        found = [info.key for info in looks.look()]
        assert sorted(found) == sorted((*there, *others))
        for key in there:
            looks.seen(every[key], key)
        again = {info.key for info in looks.look()}
        assert set(others) <= again
        late = set(every) - there
        for key in late:
            bucket.put(key, b"x")
        assert late <= {info.key for info in looks.look()}
        for key, worker in every.items():
            looks.seen(worker, key)
        bucket.requests.clear()
        list(looks.look())
        assert len(bucket.requests) <= 2  # the first segment and the last
        gone = sorted(every)[len(every) // 2]
        looks.forget(every[gone], gone)
        assert gone in {info.key for info in looks.look()}


class listing_of:  # noqa: N801 - a context, used like a function
    """Segments of a few objects."""

    def __init__(self, segment: int) -> None:
        self.segment = segment

    def __enter__(self) -> None:
        self.before, listing.SEGMENT = listing.SEGMENT, self.segment

    def __exit__(self, *_: object) -> None:
        listing.SEGMENT = self.before
