"""A small load generator over TLS: keep-alive connections that post bodies and time the answers."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import cast

HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length: "


class Connection(asyncio.Protocol):
    """One keep-alive connection; `answered` is called after each answer."""

    def __init__(self) -> None:
        self.answered: Callable[[Connection], None] = lambda _: None
        self.on_lost: Callable[[], object] = lambda: None
        self.failures = 0
        self.sent_at = 0.0
        self._transport: asyncio.Transport | None = None
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send(self, request: bytes) -> None:
        assert self._transport is not None
        self.sent_at = perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(HEAD_END)
        if end < 0:
            return
        head = self._buffer[:end].lower()
        at = head.index(LENGTH) + len(LENGTH)
        length = int(head[at : head.find(b"\r", at) if head.find(b"\r", at) > 0 else len(head)])
        if len(self._buffer) < end + 4 + length:
            return
        self.failures += not head.startswith(b"http/1.1 200")
        self._buffer = b""
        self.answered(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.failures += exc is not None
        self.on_lost()

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()


@dataclass(frozen=True)
class Result:
    """What was measured."""

    requests: int
    seconds: float
    latencies: list[float]
    failures: int

    @property
    def rate(self) -> float:
        return self.requests / self.seconds

    def quantile(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


@dataclass(frozen=True)
class Target:
    """Where to post what."""

    port: int
    path: str
    trust: str
    bodies: Sequence[bytes]
    server_name: str = "localhost"

    def requests(self) -> list[bytes]:
        head = f"POST {self.path}?timeout=3s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        return [f"{head}content-length: {len(body)}\r\n\r\n".encode() + body for body in self.bodies]

    async def connect(self, count: int) -> list[Connection]:
        context = ssl.create_default_context(cadata=self.trust)
        loop = asyncio.get_running_loop()
        made = []
        for _ in range(count):
            _, connection = await loop.create_connection(
                Connection, "127.0.0.1", self.port, ssl=context, server_hostname=self.server_name
            )
            made.append(connection)
        return made


async def saturate(target: Target, connections: int, total: int) -> Result:
    """Every connection asks again as soon as it is answered, `total` times altogether."""
    requests, pool = target.requests(), await target.connect(connections)
    done, latencies, sent, received = asyncio.Event(), [], 0, 0

    def answered(connection: Connection) -> None:
        nonlocal sent, received
        latencies.append(perf_counter() - connection.sent_at)
        received += 1
        if sent < total:
            connection.send(requests[sent % len(requests)])
            sent += 1
        elif received == total:
            done.set()

    started = perf_counter()
    for connection in pool:
        connection.answered = answered
        connection.send(requests[sent % len(requests)])
        sent += 1
    await done.wait()
    return _finished(pool, received, perf_counter() - started, latencies)


async def paced(target: Target, connections: int, rate: float, seconds: float) -> Result:
    """Asks `rate` times a second on whichever connection is free, whether the last answer is there or not."""
    requests, pool = target.requests(), await target.connect(connections)
    latencies, loop = [], asyncio.get_running_loop()
    idle: asyncio.Queue[Connection] = asyncio.Queue()
    total, done = int(rate * seconds), asyncio.Event()

    def answered(connection: Connection) -> None:
        latencies.append(perf_counter() - connection.sent_at)
        idle.put_nowait(connection)
        if len(latencies) == total:
            done.set()

    for connection in pool:
        connection.answered = answered
        idle.put_nowait(connection)
    started, begin = perf_counter(), loop.time()
    for number in range(total):
        pause = begin + number / rate - loop.time()
        if pause > 0:
            await asyncio.sleep(pause)
        (await idle.get()).send(requests[number % len(requests)])
    await done.wait()
    return _finished(pool, total, perf_counter() - started, latencies)


def _finished(pool: list[Connection], requests: int, seconds: float, latencies: list[float]) -> Result:
    failures = sum(connection.failures for connection in pool)
    for connection in pool:
        connection.close()
    return Result(requests, seconds, latencies, failures)
