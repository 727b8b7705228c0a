"""Server processes that log to a file, are waited for until ready, and never outlive their owner."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from local import keeper
from local.command import FULL
from local.errors import LocalError

LAST_LINES = 15
PROBE_INTERVAL = 0.05
STOP_GRACE = 10.0
START_TIMEOUT = 120.0
ROOM = 64 * 1024 * 1024
"""What etcd alone wants for its log, in bytes: with less, nothing that follows can be relied on."""
GO_STACK = re.compile(r"goroutine \d+ .*\[running")

Probe = Callable[[], bool]


class Keeper:
    """A directory and a process group that vanish when this process closes them or dies, be it by SIGKILL."""

    def __init__(self, files: Sequence[Path] = ()) -> None:
        """`files` lie elsewhere and go along with the directory."""
        self._process = subprocess.Popen(  # noqa: S603 -- our own script
            [sys.executable, "-I", "-S", keeper.__file__, *map(str, files)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Not ours: a process that waits for the end of our stderr would wait for the keeper too.
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        assert self._process.stdout is not None  # noqa: S101 -- asked for above
        answer = os.fsdecode(self._process.stdout.readline()).strip()
        self.directory = Path(answer)
        self.group = self._process.pid
        if not self.directory.is_absolute():
            self.close()
            raise LocalError(f"there is no place for temporary files ({answer}): set TMPDIR to a folder with room")

    def takes_back(self, files: Mapping[Path, str]) -> None:
        """Files with these contents are removed as well, unless they were changed since."""
        noted = {str(path): keeper.digest(text.encode()) for path, text in files.items()}
        (self.directory / keeper.ELSEWHERE).write_text(json.dumps(noted), encoding="utf-8")

    def close(self) -> None:
        """Kills what still runs in the group and removes the directory."""
        self._process.communicate()
        if self._process.returncode < 0:  # it was killed, and did neither
            keeper.kill_members(self.group)
            keeper.remove(self.directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(slots=True)
class Server:
    """One server process: started, probed, stopped, killed, paused and started again, always with the same command."""

    name: str
    argv: Sequence[str]
    keeper: Keeper
    probe: Probe
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    @property
    def log(self) -> Path:
        """Where it writes stdout and stderr, over all its lives."""
        return self.keeper.directory / "logs" / f"{self.name}.log"

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def exit_code(self) -> int | None:
        """What it ended with, negative for a signal; None while it runs."""
        return self._process.poll() if self._process else None

    def start(self) -> None:
        """Starts the process; `wait_ready` says when it can be used."""
        self.log.parent.mkdir(exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 -- binaries of our own making
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.keeper.directory,
                # What it leaves in a folder for temporary files goes with everything else.
                env={**os.environ, "TMPDIR": str(self.keeper.directory)},
                process_group=self.keeper.group,
            )

    def started(self) -> Self:
        """Starts it and waits until it is ready; one that does not get there is killed."""
        self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def wait_ready(self, timeout: float = START_TIMEOUT) -> None:
        """Returns when the probe says yes; a server that dies or dawdles is an error with its last log lines."""
        deadline = time.monotonic() + timeout
        while not self.probe():
            if self.pid is None:
                raise self._failed(f"died at start ({self._ended()})")
            if time.monotonic() > deadline:
                raise self._failed(f"was not ready after {timeout:.0f} s")
            time.sleep(PROBE_INTERVAL)

    def last_lines(self, count: int = LAST_LINES) -> list[str]:
        """The end of its log."""
        return self._lines()[-count:]

    def last_words(self) -> list[str]:
        """The end of its log for people: above the stack of a Go program that panicked, where the reason is."""
        lines = self._lines()
        stacks = [number for number, line in enumerate(lines) if GO_STACK.match(line)]
        return lines[: stacks[-1] if stacks else None][-LAST_LINES:]

    def stop(self, grace: float = STOP_GRACE) -> None:
        """Asks it to end; kills it when it has not ended within `grace` seconds."""
        if self._process is None:
            return
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Ends it the hard way."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def restart(self) -> None:
        """Stops it, starts it with the same command and ports, and waits until it is ready."""
        self.stop()
        self.started()

    def pause(self) -> None:
        """Freezes it: connections stay open, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a frozen server go on."""
        self._signal(signal.SIGCONT)

    def _failed(self, what: str) -> "StartFailed":
        # Not every server says it, and one that waits for another in vain does not know.
        full = shutil.disk_usage(self.keeper.directory).free < ROOM
        return StartFailed(self.name, what, self.last_words(), full=full)

    def _lines(self) -> list[str]:
        if not self.log.exists():
            return []
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _ended(self) -> str:
        code = self._process.returncode if self._process else None
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


class StartFailed(LocalError):
    """A server that did not come up, with what it said last."""

    def __init__(self, name: str, what: str, lines: Sequence[str], *, full: bool = False) -> None:
        said = "\n".join(f"  {line}" for line in lines) or "  (it wrote nothing)"
        self.lines = tuple(lines)
        hint = "\nThere is no room for temporary files: set TMPDIR to a folder with room."
        hint = hint if full or self.disk_full else ""
        super().__init__(f"{name} {what}; its last log lines:\n{said}{hint}")

    @property
    def port_taken(self) -> bool:
        """Whether another process was quicker to take its port."""
        return self._says("address already in use")

    @property
    def disk_full(self) -> bool:
        """Whether it could not write its files."""
        return self._says(*FULL)

    def _says(self, *signs: str) -> bool:
        return any(sign in line.lower() for line in self.lines for sign in signs)
