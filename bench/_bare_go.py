"""The bare client in Go: as quick as a client of the API server can be. Built into the user's cache on first use."""

import asyncio
import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from bench import _herd as herd
from bench._bare_python import writes
from local import access
from local.build import PLAIN_FLAGS, Workshop, go_folder
from local.cluster import LocalCluster
from local.entry import Entry
from local.progress import Progress

SOURCE = Path(__file__).parent / "bareclient"
FILES = ("go.mod", "main.go")
NAME = "bareclient"
FIELDS = ("method", "path", "body")

Raw = dict[str, Any]


@dataclass(frozen=True)
class BareRun:
    """What the client reports about itself."""

    seconds: float
    cpu: float


def ensure() -> Path:
    """Where the program is, built first if need be."""
    digest = hashlib.sha256(b"".join((SOURCE / name).read_bytes() for name in FILES)).hexdigest()
    entry = Entry(f"{NAME}-{digest[:16]}", "the bare client of bench_herd", "that takes a few seconds", _make, _missing)
    return entry.ensure(os.environ, Progress()) / NAME


def _make(workshop: Workshop, progress: Progress) -> None:
    with go_folder(workshop, progress) as go:
        for name in FILES:
            shutil.copyfile(SOURCE / name, go.folder / name)
        go.run("build", *PLAIN_FLAGS, "-o", str(workshop.target / NAME), ".")


def _missing(folder: Path) -> list[str]:
    return [] if (folder / NAME).is_file() else [NAME]


async def run(cluster: LocalCluster, namespace: str, stored: list[Raw], cluster_uid: str) -> BareRun:
    """Makes the writes of a herd, as many at once as the operator has workers."""
    prepared = (writes(raw, namespace, cluster_uid) for raw in stored)
    lines = b"\n".join(orjson.dumps([dict(zip(FIELDS, each, strict=True)) for each in one]) for one in prepared)
    process = await asyncio.create_subprocess_exec(
        ensure(),
        f"-server={cluster.url}",
        f"-ca={cluster.directory / 'ca.crt'}",
        f"-workers={herd.WORKERS}",
        env={**os.environ, "TOKEN": cluster.access.tokens[access.OPERATOR]},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    answer, _ = await process.communicate(lines)
    if process.returncode:
        raise SystemExit("the bare client failed")
    return BareRun(**orjson.loads(answer))
