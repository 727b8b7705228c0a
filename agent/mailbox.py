"""Where the watching threads leave what they saw, and where the main loop sleeps until something happens."""

import os
import select
from collections import deque

from agent.trigger import ConfigSeen, NodeGone, NodeSeen

Letter = ConfigSeen | NodeSeen | NodeGone | Exception


class Mailbox:
    """A queue that can be waited for together with a file descriptor."""

    def __init__(self) -> None:
        self._letters: deque[Letter] = deque()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def put(self, letter: Letter) -> None:
        """Leave a letter and wake the loop; from any thread."""
        self._letters.append(letter)
        os.eventfd_write(self._bell, 1)

    def take(self) -> list[Letter]:
        """All letters so far, in order."""
        try:
            os.eventfd_read(self._bell)
        except BlockingIOError:
            return []
        return [self._letters.popleft() for _ in range(len(self._letters))]

    def sleep(self, seconds: float | None, other: int | None = None) -> None:
        """Wait for a letter, for `other` to become readable, or for `seconds` to pass."""
        poller = select.poll()
        poller.register(self._bell, select.POLLIN)
        if other is not None:
            poller.register(other, select.POLLIN)
        # Rounded up: a wait cut to 0 ms would spin.
        poller.poll(None if seconds is None else int(seconds * 1000) + 1)

    def close(self) -> None:
        """Release the descriptor."""
        os.close(self._bell)
