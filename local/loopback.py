"""Our only changes to what is built: what Cluster API's programs serve, they serve on loopback alone.

They have no flags for that, and a throw-away control plane must not be reachable from the network.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local.command import Tool, explained
from local.errors import LocalError
from local.ports import LOOPBACK


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A line of a module's file that opens a port, and the line that we build instead."""

    module: str
    file: str
    written: str
    meant: str
    times: int = 1

    def applied(self, source: str) -> str:
        """The file with the change; raises LocalError if it does not read as it did when we looked."""
        if source.count(self.written) != self.times:
            raise LocalError(f"{self.module}/{self.file} opens its port in a new way: adapt local/loopback.py.")
        return source.replace(self.written, self.meant)


WEBHOOK: Final = SourceChange(
    "sigs.k8s.io/controller-runtime",
    "pkg/webhook/server.go",
    'tls.Listen("tcp", net.JoinHostPort(s.Options.Host,',
    f'tls.Listen("tcp", net.JoinHostPort("{LOOPBACK}",',
)
"""The webhooks of every manager."""


def keep_to(go: Tool, *more: SourceChange) -> None:
    """Has the module in Go's folder build with changed copies of the libraries that open ports."""
    changes = (WEBHOOK, *more)
    for module in dict.fromkeys(change.module for change in changes):
        _replace(go, module, [change for change in changes if change.module == module])


def _replace(go: Tool, module: str, changes: list[SourceChange]) -> None:
    go.run("mod", "download", module)
    theirs = Path(go.run("list", "-m", "-f", "{{.Dir}}", module)[-1])
    ours = go.folder / Path(module).name
    with explained(f"copying {module} into {go.folder}"):
        _copy(theirs, ours)
        for change in changes:
            path = ours / change.file
            path.write_text(change.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
    go.run("mod", "edit", f"-replace={module}=./{ours.name}")


def _copy(theirs: Path, ours: Path) -> None:
    """Contents only: folders in Go's cache are read-only, and a copy of that kind could not be removed."""
    for file in theirs.rglob("*"):
        if file.is_file():
            target = ours / file.relative_to(theirs)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
