"""Writes what the chart takes from elsewhere: CRD, agent, table of values. `python -m charts.generate [--check]`.

The CRD and the agent's manifests have their source in crds/ and agent/, the README's table in the comments of
values.yaml, and the settings that values may name in service/settings.py.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from crds.generate import CRD_FILE
from service.settings import Settings

ROOT: Final = Path(__file__).resolve().parent.parent
CHART: Final = Path("charts", "5spot")
MANIFESTS: Final = Path("agent", "manifests")
MARK: Final = "# -- "
DECIDED_BY_VALUES: Final = frozenset(
    {
        "bind_address", "webhook_port", "health_port", "metrics_port", "kubeconfig", "context", "namespace",
        "namespaces", "bootstrap_groups", "infrastructure_groups", "bootstrap_kinds", "infrastructure_kinds",
        "refused_kinds", "controller", "webhooks",
        "certificates", "certificate_file", "key_file", "certificate_secret", "webhook_service", "webhook_hosts",
        "webhook_client_ca_file", "validating_configuration", "mutating_configuration", "instance_count",
        "instance_id", "at", "speed", "host_identity",
    }
)  # fmt: skip
"""Settings that follow from other values or from where the pod runs, and those for demonstrations."""

HEAD: Final = """\
# Helm chart of 5-Spot

Made by `python -m charts.generate` from the comments of `values.yaml`. How to install, upgrade and remove it, and what
it may do, is in [docs/install.md](../../docs/install.md).

```sh
helm install 5spot charts/5spot --namespace 5spot-system --create-namespace \\
  --set image.repository=REGISTRY/5spot
```

## Values

| Key | Type | Default | Description |
|-----|------|---------|-------------|
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or with `--check` only say which are out of date."""
    parser = argparse.ArgumentParser(prog="python -m charts.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is out of date")
    options = parser.parse_args(arguments)
    stale = [path for path, text in generated() if _read(path) != text]
    for path in stale:
        if options.check:
            sys.stderr.write(f"{path} is out of date; run python -m charts.generate\n")
        else:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(dict(generated())[path], encoding="utf-8")
    return 1 if stale and options.check else 0


def generated() -> Iterator[tuple[Path, str]]:
    """Each generated file with its content."""
    yield CHART / "files" / "crd.yaml", _source(CRD_FILE)
    for manifest in sorted((ROOT / MANIFESTS).glob("*.yaml")):
        yield CHART / "files" / "agent" / manifest.name, _source(MANIFESTS / manifest.name)
    yield CHART / "values.schema.json", _schema(_source(CHART / "values.schema.json"))
    yield CHART / "README.md", HEAD + "".join(rows(_source(CHART / "values.yaml")))


def rows(values: str) -> Iterator[str]:
    """The table's rows, one for each value that has a comment."""
    lines = values.splitlines()
    for path, node, line in _leaves(yaml.compose(values)):
        text = _comment(lines, line)
        if text is None:
            continue
        value = yaml.safe_load(yaml.serialize(node))
        shown = json.dumps(value, ensure_ascii=False).replace("|", "\\|")
        yield f"| {path} | {_kind(value)} | `{shown}` | {text} |\n"


def _leaves(node: yaml.Node, path: str = "") -> Iterator[tuple[str, yaml.Node, int]]:
    """Every key with its value and line."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = f"{path}.{key.value}" if path else str(key.value)
            yield name, value, key.start_mark.line
            yield from _leaves(value, name)


def _comment(lines: list[str], line: int) -> str | None:
    """The comment right above a line, if it is one for the table."""
    above: list[str] = []
    for text in reversed([each.strip() for each in lines[:line]]):
        if not text.startswith("#"):
            return None
        above.insert(0, text)
        if text.startswith(MARK):
            words = (each.removeprefix(MARK).removeprefix("# ") for each in above)
            return " ".join(words).replace("|", "\\|")
    return None


def _kind(value: Any) -> str:
    kinds = {bool: "bool", int: "int", str: "string", list: "list", dict: "object"}
    return kinds[type(value)]


def _schema(text: str) -> str:
    """The schema with the settings that `5spot run` knows today."""
    schema = json.loads(text)
    fields = Settings.model_json_schema(by_alias=False)["properties"]
    properties = {_camel(name): _property(field) for name, field in fields.items() if name not in DECIDED_BY_VALUES}
    schema["properties"]["settings"] = {"type": "object", "additionalProperties": False, "properties": properties}
    return json.dumps(schema, indent=2) + "\n"


def _property(field: dict[str, Any]) -> dict[str, Any]:
    kept = ("type", "enum", "minimum", "maximum", "exclusiveMinimum", "description")
    return {key: field[key] for key in kept if key in field}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _source(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _read(path: Path) -> str | None:
    return _source(path) if (ROOT / path).exists() else None


if __name__ == "__main__":
    sys.exit(main())
