"""`5spot top` in a real terminal, on a real API server: it watches, and keys change what it shows."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from crds.definitions import all_definitions
from local.cluster import LocalCluster
from local.crds import apply
from service.kube.client import Client
from service.kube.resource import SCHEDULE_OVERRIDES, SCHEDULED_MACHINES
from tests.corpus import base
from tests.integration.api_door import moved, served

WITHIN = 60.0
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@dataclass
class Screen:
    """A terminal with a program in it."""

    descriptor: int
    process: asyncio.subprocess.Process
    seen: str = ""
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def read(self) -> None:
        with suppress(OSError):  # the program has ended
            self.seen += _ESCAPES.sub(" ", os.read(self.descriptor, 65536).decode("utf-8", "replace"))
        self.news.set()

    async def shows(self, text: str) -> None:
        """Waits until the text comes up from now on."""
        try:
            async with asyncio.timeout(WITHIN):
                while text not in " ".join(self.seen.split()):  # lines may be broken anywhere
                    self.news.clear()
                    await self.news.wait()
        except TimeoutError:
            raise AssertionError(f"{text!r} does not come up; the screen says {self.seen[-3000:]}") from None

    def press(self, keys: str) -> None:
        self.seen = ""
        os.write(self.descriptor, keys.encode())


@asynccontextmanager
async def top(kubeconfig: Path, namespace: str) -> AsyncIterator[Screen]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 160, 0, 0))
    words = [sys.executable, "-m", "service", "top", "-n", namespace, "--kubeconfig", str(kubeconfig)]
    environment = os.environ | {"TERM": "xterm-256color"}
    process = await asyncio.create_subprocess_exec(*words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    screen = Screen(ours, process)
    loop = asyncio.get_running_loop()
    loop.add_reader(ours, screen.read)
    try:
        yield screen
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        loop.remove_reader(ours)
        os.close(ours)


async def store(client: Client, namespace: str, name: str) -> None:
    body = moved(base(), namespace)
    body["metadata"]["name"] = name
    await client.create(SCHEDULED_MACHINES, body, namespace=namespace)


async def test_a_machine_appears_without_a_key_and_q_quits(small_cluster: LocalCluster, namespace: str) -> None:
    async with served(small_cluster) as client:
        for definition in all_definitions():
            await apply(client, definition)
        await store(client, namespace, "desk-7")
        async with top(small_cluster.kubeconfig, namespace) as screen:
            await screen.shows("desk-7")
            await store(client, namespace, "desk-8")
            await screen.shows("desk-8")
            screen.press("/desk-8\r")
            await screen.shows("1 shown")
            screen.press("\r")
            await screen.shows("No operator has handled this object yet")
            screen.press("ky")
            await screen.shows("skips the window")
            [override] = await client.list(SCHEDULE_OVERRIDES, namespace=namespace)
            assert (override["spec"]["machines"], override["spec"]["state"]) == (["desk-8"], "Closed")
            screen.press("q")
            async with asyncio.timeout(WITHIN):
                assert await screen.process.wait() == 0
