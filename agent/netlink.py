"""The kernel's process events, by netlink: names each process as it starts a program, and costs nothing at rest.

The kernel grants them in the host's network and pid namespaces only, and before Linux 6.6 only with CAP_NET_ADMIN;
where it does not, `open` says why.
"""

import errno
import os
import select
import socket
import struct
import time
from array import array
from collections.abc import Callable

from agent.frames import IGNORE, LISTEN, PROC_GROUP, Ack, Started, kernel_filter, parse, subscription

NETLINK_CONNECTOR = 11
SO_ATTACH_FILTER = 26
SO_RCVBUFFORCE = 33
RECEIVE_BUFFER = 2 * 1024 * 1024
ACK_SECONDS = 0.5
TOKEN_BYTES = 3
FRAMES_PER_TURN = 1024
RESCAN_SECONDS = 0.25


class EventsUnavailable(Exception):
    """The kernel does not hand out process events here; the message says why."""


class EventSource:
    """Names processes as the kernel reports them; after lost messages, names every process there is."""

    name = "events"

    def __init__(self, all_pids: Callable[[], list[int]]) -> None:
        self._all_pids = all_pids
        self._socket: socket.socket | None = None
        self._overrun = False
        self._next_rescan = 0.0

    def open(self) -> None:
        """Subscribe, and wait for the kernel to agree."""
        self.close()
        try:
            self._socket, token = _connect(), int.from_bytes(os.urandom(TOKEN_BYTES))
            self._socket.send(subscription(LISTEN, token))
            _await_ack(self._socket, token)
        except OSError as error:
            self.close()
            raise EventsUnavailable(_why(error)) from error
        except EventsUnavailable:
            self.close()
            raise
        self._overrun = False

    def close(self) -> None:
        """Unsubscribe. Older kernels count listeners and would go on producing events for one that only closed."""
        if self._socket is None:
            return
        closing, self._socket = self._socket, None
        with closing:
            try:
                closing.send(subscription(IGNORE))
            except OSError:
                return

    def fileno(self) -> int | None:
        """Readable when there is an event."""
        return None if self._socket is None else self._socket.fileno()

    def wait(self, now: float) -> float | None:
        """Seconds until a rescan that is owed; None when there is none."""
        return max(0.0, self._next_rescan - now) if self._overrun else None

    def candidates(self, now: float) -> list[int]:
        """Processes that started something since the last call."""
        pids = self._drain()
        if not self._overrun or now < self._next_rescan:
            return pids
        # A storm of processes overruns the buffer again and again: rescan no more often than polling would.
        self._overrun, self._next_rescan = False, now + RESCAN_SECONDS
        return self._all_pids()

    def _drain(self) -> list[int]:
        pids: dict[int, None] = {}
        for _ in range(FRAMES_PER_TURN):
            datagram = self._receive()
            if datagram is None:
                break
            pids.update((report.pid, None) for report in parse(datagram) if isinstance(report, Started))
        return list(pids)

    def _receive(self) -> bytes | None:
        if self._socket is None:
            return None
        try:
            return _from_kernel(self._socket)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise EventsUnavailable(_why(error)) from error
            self._overrun = True
            return b""


def _connect() -> socket.socket:
    kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    link = socket.socket(socket.AF_NETLINK, kind, NETLINK_CONNECTOR)
    try:
        _attach_filter(link)
        _widen(link)
        link.bind((0, PROC_GROUP))
    except OSError:
        link.close()
        raise
    return link


def _attach_filter(link: socket.socket) -> None:
    code = array("B", kernel_filter())
    address, size = code.buffer_info()
    link.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", size // 8, address))


def _widen(link: socket.socket) -> None:
    try:
        link.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
    except OSError:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)


def _from_kernel(link: socket.socket) -> bytes:
    datagram, (sender, _) = link.recvfrom(4096)
    return bytes(datagram) if sender == 0 else b""


def _await_ack(link: socket.socket, token: int) -> None:
    deadline = time.monotonic() + ACK_SECONDS
    poller = select.poll()
    poller.register(link, select.POLLIN)
    # The answer is there at once, but on a busy host this process may be held up for longer: look before giving up.
    while poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
        if _acknowledged(link, token):
            return
    raise EventsUnavailable("the kernel did not answer the subscription: it wants the host's pid namespace (hostPID)")


def _acknowledged(link: socket.socket, token: int) -> bool:
    for report in parse(_from_kernel(link)):
        if not isinstance(report, Ack) or report.token != token:
            continue  # answers to others' subscriptions come here too
        if report.error:
            raise OSError(report.error, os.strerror(report.error))
        return True
    return False


def _why(error: OSError) -> str:
    hints = {
        errno.EPERM: "the kernel requires CAP_NET_ADMIN",
        errno.ECONNREFUSED: "the kernel requires the host's network namespace (hostNetwork)",
        errno.EPROTONOSUPPORT: "this kernel was built without CONFIG_CONNECTOR",
    }
    hint = hints.get(error.errno or 0, "process events are not available")
    return f"{hint} ({error.strerror or error})"
