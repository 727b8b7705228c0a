"""The machine's side of a node, as its owner sees it: the bridge, and how to run a program on the node."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from local.errors import LocalError
from local.node import subnets, warden

WARDEN = (sys.executable, "-I", "-S", warden.__file__)


class Ground:
    """`with Ground()` prepares this machine for one node; afterwards, also after a SIGKILL, all is as before."""

    def __init__(self) -> None:
        self._lock = os.open(warden.LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise LocalError("a node runs on this machine already, and there can be one: stop it first.") from error
        self.subnet = subnets.pick()
        self._warden = self._started()

    def on_node(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command on the node: it sees the node's mounts and ends with the node."""
        return [*WARDEN, "enter", str(self._warden.pid), *command]

    def close(self) -> None:
        """Kills everything that runs on the node and takes everything back."""
        self._warden.communicate()
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
            raise LocalError(f"this machine cannot hold a node: {answer.removeprefix('error: ') or 'no reason given'}")
        return process
