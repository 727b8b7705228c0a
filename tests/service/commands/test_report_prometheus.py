"""What `5spot report` says about a Prometheus that does not answer as one."""

import asyncio

import pytest

from service.commands import prometheus
from service.commands.table import UsageError
from tests.service.fleet.test_usage import MONTH


async def asked_of(answer: bytes) -> None:
    """Asks a server that gives this answer, whatever it is asked."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await prometheus.read_report(f"http://127.0.0.1:{port}", MONTH)


async def test_a_proxy_that_answers_instead_is_named_by_its_status():
    page = b"<html>Bad Gateway</html>"
    with pytest.raises(UsageError, match=r"does not answer: HTTP 502, and no JSON$"):
        await asked_of(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: %d\r\n\r\n%b" % (len(page), page))


async def test_one_that_takes_too_long_is_called_that(monkeypatch):
    async def never(*_args):
        raise TimeoutError

    monkeypatch.setattr(prometheus, "_ask", never)
    with pytest.raises(UsageError, match=r"Prometheus at prometheus does not answer: TimeoutError$"):
        await prometheus.read_report("http://prometheus:9090", MONTH)


@pytest.mark.parametrize("url", ["http://prometheus:many", "http://prometheus:99999", "http://[::1", "ftp://x", "x:90"])
async def test_what_is_no_address_is_wrong_usage(url):
    with pytest.raises(UsageError, match="--prometheus needs an address"):
        await prometheus.read_report(url, MONTH)
