"""Files of manifests for tests of the commands."""

import json
from pathlib import Path
from typing import Any

from service.cli import main


def written(folder: Path, *documents: Any, name: str = "manifests.yaml") -> str:
    """A file with these documents; JSON is YAML too."""
    path = folder / name
    path.write_text("\n---\n".join(json.dumps(document) for document in documents), encoding="utf-8")
    return str(path)


def run_json(capsys: Any, *arguments: str) -> tuple[int, Any]:
    """Exit code and parsed standard output of a command."""
    code = main([*arguments, "-o", "json"])
    return code, json.loads(capsys.readouterr().out)
