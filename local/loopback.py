"""Our one change to what is built: Cluster API's webhook listens on loopback alone.

It has no flag for that, and a throw-away control plane must not be reachable from the network.
"""

import shutil
from pathlib import Path
from typing import Final

from local.command import Tool, explained
from local.errors import LocalError
from local.ports import LOOPBACK

MODULE: Final = "sigs.k8s.io/controller-runtime"
FILE: Final = "pkg/webhook/server.go"
WRITTEN: Final = 'tls.Listen("tcp", net.JoinHostPort(s.Options.Host,'
MEANT: Final = f'tls.Listen("tcp", net.JoinHostPort("{LOOPBACK}",'


def keep_to(go: Tool) -> None:
    """Has the module in Go's folder build with a changed copy of the library that opens the port."""
    go.run("mod", "download", MODULE)
    theirs = Path(go.run("list", "-m", "-f", "{{.Dir}}", MODULE)[-1])
    ours = go.folder / Path(MODULE).name
    with explained(f"copying {MODULE} into {go.folder}"):
        _copy(theirs, ours)
        changed = _changed((ours / FILE).read_text(encoding="utf-8"))
        (ours / FILE).write_text(changed, encoding="utf-8")
    go.run("mod", "edit", f"-replace={MODULE}=./{ours.name}")


def _copy(theirs: Path, ours: Path) -> None:
    """Contents only: folders in Go's cache are read-only, and a copy of that kind could not be removed."""
    for file in theirs.rglob("*"):
        if file.is_file():
            target = ours / file.relative_to(theirs)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


def _changed(source: str) -> str:
    if source.count(WRITTEN) != 1:
        raise LocalError(f"{MODULE}/{FILE} opens its port in a new way: adapt local/loopback.py.")
    return source.replace(WRITTEN, MEANT)
