"""The machine's side of a node, as its owner sees it: the bridge, and how to run a program on the node."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from local.errors import LocalError, NoNodeError
from local.node import subnets, warden

LOOK_EVERY = 0.2
WARDEN = (sys.executable, "-I", "-S", warden.__file__)


class Ground:
    """`with Ground()` prepares this machine for one node; afterwards, also after a SIGKILL, all is as before."""

    def __init__(self, patience: float = 0.0) -> None:
        """Waits so many seconds for the end of another node."""
        self._lock = _locked(time.monotonic() + patience)
        self.subnet = subnets.pick()
        self._warden = self._started()

    @property
    def warden(self) -> int:
        """The process id of the warden."""
        return self._warden.pid

    def on_node(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command on the node: it sees the node's mounts and ends with the node."""
        return [*WARDEN, "enter", str(self.warden), *command]

    def close(self) -> None:
        """Kills everything that runs on the node and takes everything back."""
        self._warden.communicate()
        if self._warden.returncode < 0:  # it was killed, and cleaned up nothing
            subprocess.run([*WARDEN, "clean", ""], check=True)  # noqa: S603 -- our own script
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _started(self) -> "subprocess.Popen[str]":
        process = subprocess.Popen(  # noqa: S603 -- our own script
            [*WARDEN, "hold", self.subnet.bridge_with_prefix],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            pass_fds=(self._lock,),
            process_group=0,
        )
        assert process.stdout is not None  # noqa: S101 -- asked for above
        answer = process.stdout.readline().strip()
        if answer != "ready":
            process.communicate()
            os.close(self._lock)
            raise NoNodeError(f"this machine cannot hold a node: {answer.removeprefix('error: ') or 'no reason given'}")
        return process


def _locked(deadline: float) -> int:
    """The lock of the one node that a machine can have.

    A warden removes the file with its node, so the file that was locked may no longer be the one that others find.
    """
    while True:
        lock = os.open(warden.LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        if _holds(lock):
            return lock
        os.close(lock)
        if time.monotonic() > deadline:
            raise LocalError("a node runs on this machine already, and there can be one: stop it first.")
        time.sleep(LOOK_EVERY)


def _holds(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(lock), warden.LOCK.stat())
    except (BlockingIOError, FileNotFoundError):
        return False
