"""A small `go` that makes files of the right names, so that what surrounds a build can be tested in seconds."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from local import loopback
from local.build import CRDS, STAGE_FILES, STAGES

PROGRAMS = ("server", "core", "kube-apiserver", "kube-controller-manager", "kubectl", "kwok")

SCRIPT = """\
#!/bin/sh
echo "$*" >> {log}
echo "GOPROXY=$GOPROXY GOFLAGS=$GOFLAGS GOMODCACHE=$GOMODCACHE" >> {log}.environ
case "$1 $2" in
"env GOVERSION") echo {version} ;;
"env GOMODCACHE") echo {module_cache}; echo {root}/gocache ;;
"list -deps") echo "go: downloading example.org/module v1.0.0"; echo one; echo two ;;
"list -m") eval "module=\\${{$#}}"; echo {root}/modules/$module ;;
"mod download")
  {on_download} ;;
"mod edit") ;;
"build -v")
  {before_build}
  while [ "$1" != -o ]; do shift; done
  for name in {programs}; do printf '#!/bin/sh\\n' > "$2$name"; chmod +x "$2$name"; done ;;
*) echo "not a command of the fake go: $*"; exit 2 ;;
esac
"""


@dataclass(frozen=True)
class FakeGo:
    root: Path

    def install(
        self,
        *,
        version: str = "go1.26.8",
        before_build: str = "true",
        programs: tuple[str, ...] = PROGRAMS,
        module_cache: Path | None = None,
        on_download: str = "true",
    ) -> None:
        text = SCRIPT.format(
            log=shlex.quote(str(self.log)),
            root=shlex.quote(str(self.root)),
            version=version,
            before_build=before_build,
            programs=" ".join(programs),
            module_cache=module_cache or self.root / "gomod",
            on_download=on_download,
        )
        executable(self.bin / "go", text)
        files = [
            Path(CRDS[0]) / CRDS[1] / "machines.yaml",
            *(Path(STAGES[0]) / STAGES[1] / name for name in STAGE_FILES),
        ]
        for file in files:
            self.module_file(file)
        self.module_file(Path(loopback.WEBHOOK.module) / loopback.WEBHOOK.file, loopback.WEBHOOK.written)

    def module_file(self, file: Path, text: str | None = None) -> None:
        """A file of a module, by the module's path and its own."""
        path = self.root / "modules" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text or f"# {file.name}\n")

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def log(self) -> Path:
        return self.root / "go.log"

    @property
    def cache(self) -> Path:
        return self.root / "cache" / "5spot"

    def environ(self, **more: str) -> dict[str, str]:
        return {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(self.root),
            "XDG_CACHE_HOME": str(self.root / "cache"),
        } | more

    def builds(self) -> int:
        return sum(line.startswith("build ") for line in self.log.read_text().splitlines()) if self.log.exists() else 0


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


PYTHON = sys.executable
