"""The tutorial, typed as it stands."""

import re
from pathlib import Path

import pytest

from local import examples
from local.binaries import Assets
from tests.docs import pages
from tests.local.spot import Spot

TUTORIAL = pages.ROOT / "docs" / "tutorial.md"
FLOOR = pages.ROOT / "docs" / "tutorial-floor.md"


@pytest.mark.parametrize("page", [TUTORIAL, FLOOR], ids=lambda page: page.stem)
@pytest.mark.timeout(pages.SLOWEST + 100)
def test_every_command_of_the_tutorial_works_and_prints_what_the_page_says(
    tmp_path: Path, assets: Assets, page: Path
) -> None:
    todo = [step for block in pages.blocks("console", pages=[page]) for step in pages.steps(block.text)]
    spot = Spot.at(tmp_path, assets)
    try:
        results = pages.run(todo, spot.environment)
    finally:
        spot("local", "down")
    for step, (code, output) in zip(todo, results, strict=True):
        refused = bool(re.search("is invalid|: rejected", "".join(step.shown)))
        assert (code != 0) == refused, f"$ {step.command}\n{output}"
        assert step.agrees_with(output), f"$ {step.command}\n{output}\n… but the page shows:\n" + "\n".join(step.shown)
    assert spot.files == []


def test_the_manifest_that_the_tutorial_shows_is_the_one_that_it_applies() -> None:
    (shown,) = pages.blocks("yaml", pages=[TUTORIAL])
    assert shown.text == examples.path(examples.OFFICE).read_text()


def test_the_manifests_that_the_floor_shows_are_those_that_it_applies() -> None:
    shown = [block.text for block in pages.blocks("yaml", pages=[FLOOR])]
    folder = pages.ROOT / "local" / "examples" / "floor"
    assert shown == [(folder / name).read_text(encoding="utf-8") for name in ("class.yaml", "desks.yaml")]


@pytest.mark.parametrize("word", ["preview", "validate", "local up", "local env", "kubectl apply", "killSwitch"])
def test_the_tutorial_shows_what_a_newcomer_should_have_seen(word: str) -> None:
    assert word in TUTORIAL.read_text()
