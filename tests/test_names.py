"""A name stands for one thing: a reader who searches for a class or a module finds one."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("agent", "certs", "crds", "local", "release", "service", "webhooks")
TWO_SIDES = {"events", "reclaim", "report"}
"""What `decide` derives and `act` writes."""


def public_classes() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield node.name, path.relative_to(ROOT)


def modules(package: str) -> set[str]:
    return {path.stem for path in (ROOT / package).glob("*.py")} - {"__init__"}


def test_no_two_public_classes_share_a_name():
    places = defaultdict(list)
    for name, path in public_classes():
        places[name].append(str(path))
    assert len(places) > 300, "the classes are found"
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_decide_and_act_share_a_module_name_only_for_two_sides_of_one_noun():
    assert modules("service/decide") & modules("service/act") == TWO_SIDES
