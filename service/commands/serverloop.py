"""Runs `5spot console-server` until a signal ends it."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from certs.files import FileWatch
from certs.tls import CertificateFiles, ServingContext
from service import log
from service.clock import SystemClock
from service.commands.consoleloop import ended_by_signal
from service.commands.table import UsageError
from service.console.cluster import serving
from service.console.viewers import Viewers
from service.http.servers import bound
from service.kube import credentials
from service.kube.credentials import Endpoint, KubeconfigRefused
from service.runtime import memory

_ORIGIN: Final = re.compile(
    r"https://[a-z0-9.-]+(:[0-9]{1,5})?|http://(localhost|127\.0\.0\.1)(:[0-9]{1,5})?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """Files that certificates are in."""

    authority: Path | None
    certificate: Path | None
    key: Path | None


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What the command line says."""

    origins: frozenset[str]
    listen: str
    port: int
    server: str
    files: ServerFiles
    operator_namespace: str


async def serve(given: ServerOptions) -> None:
    """Serves until a signal ends it."""
    log.configure("info")
    memory.configure()
    _check(given)
    viewers = Viewers(_endpoint(given), SystemClock(), given.operator_namespace)
    try:
        listener = bound(given.listen, given.port)
        async with _tls(given.files) as tls, serving(viewers, given.origins, listener, tls):
            await ended_by_signal()
    except OSError as error:
        raise UsageError(error.strerror or str(error)) from None


def _check(given: ServerOptions) -> None:
    for each in given.origins:
        if not _ORIGIN.fullmatch(each):
            raise UsageError(f"--origin {each}: give https://NAME or https://NAME:PORT; http:// only for localhost")
    if len({each.partition(":")[0] for each in given.origins}) > 1:
        raise UsageError("--origin: give either https:// or http:// addresses: cookies are for one of them")
    if bool(given.files.certificate) != bool(given.files.key):
        raise UsageError("--certificate and --key go together")


def _endpoint(given: ServerOptions) -> Endpoint:
    try:
        authority = given.files.authority.read_bytes() if given.files.authority else None
        return credentials.inline(given.server, ca=authority)
    except OSError as error:
        raise UsageError(f"--certificate-authority: {error.strerror}") from None
    except KubeconfigRefused as error:
        raise UsageError(f"--server: {error}") from None


@asynccontextmanager
async def _tls(files: ServerFiles) -> AsyncIterator[ssl.SSLContext | None]:
    if files.certificate is None or files.key is None:
        yield None
        return
    context = ServingContext()
    watch = FileWatch(CertificateFiles(files.certificate, files.key), context)
    watch.look()
    if not watch.loaded.is_set():
        raise UsageError("--certificate and --key cannot be read, or do not belong together")
    looking = asyncio.create_task(watch.run())
    try:
        yield context.live
    finally:
        looking.cancel()
        await asyncio.wait((looking,))
