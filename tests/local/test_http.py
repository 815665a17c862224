"""The small HTTP server: what curl and boto3 send, and what nobody should."""

from __future__ import annotations

import asyncio

import pytest

from polarlambda.local import http


async def exchange(*sent: bytes) -> bytes:
    """Send to an echo server, in pieces; everything it answers until it closes."""

    async def echo(request: http.Request) -> http.Response:
        body = f"{request.method} {request.path} {sorted(request.query.items())} ".encode()
        return http.Response(200, body + request.body)

    server = await http.serve(echo)
    host, _, port = http.address(server).partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for piece in sent:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.01)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    server.close()
    return answer


def send(*sent: bytes) -> bytes:
    return asyncio.run(exchange(*sent))


def test_requests_on_one_connection_are_answered_in_order() -> None:
    answer = send(
        b"GET /a%20b?q=1&q=2 HTTP/1.1\r\nHost: x\r\n\r\n"
        b"POST /c HTTP/1.1\r\nContent-Length: 3\r\nConnection: close\r\n\r\nxyz"
    )
    first, second = answer.split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert first.endswith(b"\r\n\r\nGET /a b [('q', '2')] ")
    assert second.endswith(b"\r\n\r\nPOST /c [] xyz")
    assert b"Connection: close" in second


def test_chunked_bodies_and_expectations() -> None:
    answer = send(
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
        b"3\r\nabc\r\n4;name=value\r\nde",
        b"fg\r\n0\r\nTrailer: t\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"POST / [] abcdefg")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", b"413"),
    ],
)
def test_bad_requests_are_refused(sent: bytes, status: bytes) -> None:
    assert send(sent).startswith(b"HTTP/1.1 " + status)


def test_a_request_that_breaks_off_gets_no_answer() -> None:
    assert send(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc") == b""
