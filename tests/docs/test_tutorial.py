"""The tutorial, typed as it stands."""

import re
from pathlib import Path

import pytest

from local import examples
from local.binaries import Assets
from tests.docs import pages
from tests.local.spot import Spot

TUTORIAL = pages.ROOT / "docs" / "tutorial.md"


@pytest.mark.timeout(pages.SLOWEST + 100)
def test_every_command_of_the_tutorial_works_and_prints_what_the_page_says(tmp_path: Path, assets: Assets) -> None:
    todo = [step for block in pages.blocks("console", pages=[TUTORIAL]) for step in pages.steps(block.text)]
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


@pytest.mark.parametrize("word", ["preview", "validate", "local up", "local env", "kubectl apply", "killSwitch"])
def test_the_tutorial_shows_what_a_newcomer_should_have_seen(word: str) -> None:
    assert word in TUTORIAL.read_text()
