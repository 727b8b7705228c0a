"""`5spot run` as a child process, for tests that start, ask, stop and kill it like the kubelet would."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.waiting import until


class Process:
    """`5spot run` as a child, and what it logs."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self.child = child
        self.events: list[dict] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.child.stderr is not None
        while line := await self.child.stderr.readline():
            # One that is killed may not have come to the end of its last line.
            whole = line.startswith(b"{") and line.endswith(b"\n")
            self.events.append(json.loads(line) if whole else {"event": line.decode(errors="replace")})

    async def port(self, server: str) -> int:
        return await until(lambda: next((e["port"] for e in self.events if e.get("server") == server), None), within=60)

    async def ended(self) -> int:
        code = await asyncio.wait_for(self.child.wait(), 60)
        await self._reading
        return code


THIS = (sys.executable, "-m", "service")
"""The operator of this checkout."""


@asynccontextmanager
async def started(
    words: list[str], *, program: Sequence[str] = THIS, env: dict[str, str] | None = None, cwd: Path | None = None
) -> AsyncIterator[Process]:
    surroundings = os.environ | {"KUBECONFIG": ""} if env is None else env
    argv = [*program, "run", *words]
    child = await asyncio.create_subprocess_exec(*argv, stderr=asyncio.subprocess.PIPE, env=surroundings, cwd=cwd)
    process = Process(child)
    try:
        yield process
    finally:
        if child.returncode is None:
            child.kill()
        await process.ended()
