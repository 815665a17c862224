"""Bodies that threads use again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from blockstore.upload_buffers import UploadBuffers


def test_a_thread_gets_its_body_again_and_another_size_is_another_one():
    bodies = UploadBuffers()
    body, view = bodies.make(b"head", 3)
    view[:] = b"abc"
    assert body == b"headabc"
    again, view = bodies.make(b"HEAD", 3)
    assert again is body and body == b"HEADabc" and len(view) == 3
    view.release()
    longer, view = bodies.make(b"", 9)
    assert longer is not body and len(longer) == len(view) == 9


def test_no_two_threads_share_a_body():
    bodies, both = UploadBuffers(), Barrier(2)

    def fill(letter):
        body, view = bodies.make(b"-", 4)
        both.wait(10)
        view[:] = letter * 4
        both.wait(10)
        return bytes(body)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(fill, (b"a", b"b"))) == [b"-aaaa", b"-bbbb"]
