"""Picks ports on loopback for the servers of a control plane."""

import random
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from local.errors import LocalError

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class PortRange:
    """Ports from `first` to `last`, both included."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> "PortRange":
        """Reads `20000-29999`."""
        first, dash, last = text.partition("-")
        if not (dash and first.isascii() and first.isdigit() and last.isascii() and last.isdigit()):
            raise ValueError(f"{text!r} is not a range of ports such as 20000-29999")
        if not 1024 <= int(first) <= int(last) <= 65535:
            raise ValueError(f"{text!r}: ports must lie between 1024 and 65535, the smaller one first")
        return cls(int(first), int(last))

    def pick(self, *given: int) -> int:
        """A port that is free at the moment; another process may still take it first.

        `given` are those that a server was given already and does not listen on yet.
        """
        for port in self._shuffled():
            if port not in given and _is_free(port):
                return port
        raise LocalError(
            f"no free port between {self.first} and {self.last} on {LOOPBACK}: "
            "stop what listens there, or choose another range with --ports FIRST-LAST"
        )

    def _shuffled(self) -> Iterator[int]:
        count = self.last - self.first + 1
        return (self.first + offset for offset in random.sample(range(count), count))


# Below the range that the kernel takes for outgoing connections: no client grabs the port of a restarting server.
ANY_PORTS = PortRange(20000, 29999)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As Go's servers do: a connection in TIME_WAIT does not make a port taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
