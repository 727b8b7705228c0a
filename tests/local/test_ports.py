"""Ports on loopback: free ones are found, clashes are survived, exhaustion is said."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from local.cluster import start_on_free_port
from local.errors import LocalError
from local.operator import Endpoints
from local.ports import ANY_PORTS, PortRange
from local.processes import Keeper, Server, StartFailed

LISTEN = """
import socket, sys, signal
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    s.bind(("127.0.0.1", int(sys.argv[1])))
except OSError as error:
    sys.exit(f"listen tcp: bind: {error.strerror.lower()}")
s.listen()
signal.pause()
"""


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def home() -> Iterator[Keeper]:
    with Keeper() as made:
        yield made


class Offered(PortRange):
    """Offers given ports in a given order, whether or not they are taken."""

    ports: list[int]

    def pick(self, *given: int) -> int:
        return self.ports.pop(0)


def offered(*ports: int) -> Offered:
    made = Offered(1024, 65535)
    object.__setattr__(made, "ports", list(ports))
    return made


def listener(home: Keeper, port: int) -> Server:
    def answers() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0 and server.pid is not None

    server = Server(f"listener-{port}", [sys.executable, "-c", LISTEN, str(port)], home, answers)
    return server


def reserved(port: int) -> socket.socket:
    """Takes a port so that it counts as free, and yet no connection and no other test can get it."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(("127.0.0.1", port))
    except OSError:
        made.close()
        raise
    return made


@pytest.fixture
def neighbours() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ports side by side."""
    while True:
        first = ANY_PORTS.pick()
        with ExitStack() as stack:
            try:
                pair = stack.enter_context(reserved(first)), stack.enter_context(reserved(first + 1))
            except OSError:
                continue
            yield pair
            return


def test_a_port_in_use_is_not_picked(neighbours: tuple[socket.socket, socket.socket]) -> None:
    first, second = (each.getsockname()[1] for each in neighbours)
    neighbours[0].listen()
    assert PortRange(first, second).pick() == second


def test_a_port_is_not_given_twice_to_one_server(neighbours: tuple[socket.socket, socket.socket]) -> None:
    first, second = (each.getsockname()[1] for each in neighbours)
    assert PortRange(first, second).pick(first) == second


def test_a_range_too_small_for_one_server_is_exhausted() -> None:
    webhooks = ANY_PORTS.pick()
    with pytest.raises(LocalError, match=rf"no free port between {webhooks} and {webhooks}"):
        Endpoints.pick(webhooks, PortRange(webhooks, webhooks))


def test_an_exhausted_range_is_said_in_a_sentence(taken: int) -> None:
    with pytest.raises(LocalError, match=rf"no free port between {taken} and {taken}.*--ports"):
        PortRange(taken, taken).pick()


def test_losing_the_race_for_a_port_means_trying_another(home: Keeper, taken: int) -> None:
    free = ANY_PORTS.pick()
    tried: list[int] = []

    def make(port: int) -> Server:
        tried.append(port)
        server = listener(home, port)
        if port == taken:
            server.probe = lambda: False
        return server

    server = start_on_free_port(make, offered(taken, free))
    assert tried == [taken, free]
    server.stop()


def test_a_server_that_fails_for_another_reason_is_not_tried_again(home: Keeper) -> None:
    def make(port: int) -> Server:
        return Server("broken", [sys.executable, "-c", "raise SystemExit('no such flag')"], home, lambda: False)

    with pytest.raises(StartFailed, match="no such flag"):
        start_on_free_port(make, offered(1))


@pytest.mark.parametrize("text", ["", "1", "a-b", "20-10", "0-5", "1024-70000", "1024-٢٠٠٠", "-", "1-2-3"])
def test_what_is_not_a_range_of_ports_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ports"):
        PortRange.parse(text)


def test_a_range_is_read_as_written() -> None:
    assert PortRange.parse("20000-20010") == PortRange(20000, 20010)
