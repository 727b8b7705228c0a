"""What import-linter does not see of the rooms: cycles inside a room, and imports that are hidden from it."""

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("agent", "certs", "crds", "local", "service", "webhooks")
IMPORT_FUNCTIONS = {"import_module", "__import__"}
BY_NAME = {
    "service/cli.py",  # a command of service.commands.table, once it is asked for
    "service/commands/root.py",  # the same
    "service/imports.py",  # libraries
    "service/kube/library.py",  # the client library
}


@cache
def trees() -> dict[str, ast.Module]:
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in paths}


def module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(tree: ast.AST, modules: set[str]) -> Iterator[str]:
    """Our own modules that a part of a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{each.name}" for each in node.names}
            yield from inner & modules or {node.module} & modules
        elif isinstance(node, ast.Import):
            yield from {each.name for each in node.names} & modules


def test_no_module_imports_itself_by_a_detour():
    modules = set(map(module_of, trees()))
    graph = {module_of(path): set(imported(tree, modules)) for path, tree in trees().items()}
    assert sum(map(len, graph.values())) > 1000, "imports are found"
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


def test_no_module_imports_ours_for_its_annotations_only():
    modules = set(map(module_of, trees()))
    guarded = [
        (path, imports)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if (imports := list(imported(node, modules)))
    ]
    assert guarded == []


def test_only_these_modules_import_by_name():
    calls = {
        path
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in IMPORT_FUNCTIONS
    }
    assert calls == BY_NAME


def test_the_ladder_covers_all_of_the_service():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (ladder,) = (each for each in contracts if each.get("containers") == ["service"])
    assert ladder["type"] == "layers"
    assert ladder["exhaustive"] is True
    assert "ignore_imports" not in ladder
