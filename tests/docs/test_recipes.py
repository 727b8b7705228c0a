"""The recipes that make one ScheduledMachine for each host of a list, through the real Kustomize."""

import re
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from crds.rules import check
from local.binaries import Assets
from tests.crds.classes import tenancy
from tests.docs import pages

PAGE = pages.ROOT / "docs" / "multi-tenancy.md"
DESKS = {"labels": {"example.com/desks": "true"}}
Raw = dict[str, Any]


def block(language: str, beginning: str) -> str:
    """The one block of the page that holds these words."""
    (found,) = (each.text for each in pages.blocks(language, pages=[PAGE]) if beginning in each.text)
    return found


def write(folder: Path, path: str, text: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text, encoding="utf-8")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The page's base: the machine that it shows, called desk."""
    write(tmp_path, "base/machine.yaml", block("yaml", "name: desk-7, namespace: trading").replace("desk-7", "desk"))
    (first, *_) = yaml.safe_load_all(block("yaml", "# base/kustomization.yaml"))
    write(tmp_path, "base/kustomization.yaml", yaml.safe_dump(first))
    return tmp_path


def built(assets: Assets, folder: Path) -> dict[str, Raw]:
    done = subprocess.run([assets.kubectl, "kustomize", folder], check=True, capture_output=True, text=True)
    return {each["metadata"]["name"]: each for each in yaml.safe_load_all(done.stdout)}


def assert_desks(found: dict[str, Raw], addresses: dict[str, str]) -> None:
    """They are those of the list, and the page's class takes them."""
    assert {name: raw["spec"]["parameters"] for name, raw in found.items()} == {
        name: {"address": address} for name, address in addresses.items()
    }
    desk = yaml.safe_load(block("yaml", "kind: ScheduledMachineClass"))
    for raw in found.values():
        verdict = check(raw, tenancy=tenancy(desk, labels=DESKS["labels"]))
        assert verdict.violations == ()
        assert verdict.model is not None


def test_an_overlay_for_each_host(assets: Assets, base: Path) -> None:
    for text in block("yaml", "# base/kustomization.yaml").split("---\n")[1:]:
        path = re.match(r"# (\S+)\n", text)
        assert path is not None
        write(base, path[1], text)
    for number in (8, 9):
        write(base, f"desk-{number}/kustomization.yaml", of_seven(base).replace("7", str(number)))
    assert_desks(built(assets, base), {f"desk-{number}": f"10.20.3.{number}" for number in (7, 8, 9)})


def of_seven(base: Path) -> str:
    return (base / "desk-7" / "kustomization.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("end", ["\n", "", "\n\n"], ids=["plain", "without the end of the last line", "blank line"])
def test_the_overlays_of_a_list(assets: Assets, base: Path, end: str) -> None:
    hosts = f"7 10.20.3.7\n8 10.20.3.8\n12 10.20.4.12{end}"
    script = pages.ROOT / "examples" / "classes" / "overlays.sh"
    subprocess.run(["sh", script], cwd=base, check=True, input=hosts, text=True)
    assert_desks(built(assets, base), {"desk-7": "10.20.3.7", "desk-8": "10.20.3.8", "desk-12": "10.20.4.12"})


def _element_field(element: dict[str, str], found: re.Match[str]) -> str:
    return element[found[1]]


def test_the_application_of_each_element_of_a_list(assets: Assets, base: Path) -> None:
    """What Argo CD does is done by hand: it fills the template in, and puts its `kustomize` over the base."""
    whole = block("yaml", "kind: ApplicationSet")
    (listed,) = yaml.safe_load(whole)["spec"]["generators"]
    elements = listed["list"]["elements"]
    assert len(elements) == 2
    for element in elements:
        filled = re.sub(r"{{ \.(\w+) }}", partial(_element_field, element), whole)
        source = yaml.safe_load(filled)["spec"]["template"]["spec"]["source"]
        assert source["path"] == "base"
        overlay = {"resources": ["../base"], **source["kustomize"]}
        write(base, "overlay/kustomization.yaml", yaml.safe_dump(overlay))
        assert_desks(built(assets, base / "overlay"), {f"desk-{element['desk']}": element["address"]})
