"""Commands, manifests and links of all pages are real."""

import os
import re
import shlex
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from crds.rules import check
from service.commands.root import load
from service.commands.table import chosen_command
from service.reference import declared, full_name
from tests.docs import pages
from tests.docs.test_tutorial import FLOOR, TUTORIAL

VERBS = {
    *("annotate", "apply", "auth", "config", "cordon", "create", "debug", "delete", "describe", "drain", "edit"),
    *("events", "exec", "explain", "get", "label", "logs", "patch", "port-forward", "rollout", "scale", "taint"),
    *("uncordon", "wait"),
}
FIRST_WORDS = {
    "5spot",
    "eval",
    "kubectl",
    "make",
    "helm",
    "git",
    "cd",
    "python",
    "docker",
    "curl",
    "sed",
    ".venv/bin/5spot",
}
OTHER_PAGES = [page for page in pages.PAGES if page not in (TUTORIAL, FLOOR)]
CONSOLE = pages.blocks("console", pages=OTHER_PAGES)
COMMAND_LINES = [line for block in pages.blocks("console", "sh") for line in pages.commands(block)]


def calls(*programs: str) -> list[list[str]]:
    """The calls of some programs in all pages, in words; pipes and placeholders taken apart."""
    parts = (part for line in COMMAND_LINES for part in re.split(r"\|\|?|&&|;|\$\(|\)", line.partition("<<")[0]))
    words = [shlex.split(part.strip().strip('"'), comments=True) for part in parts if balanced(part)]
    return [found for found in words if found and found[0] in programs]


def balanced(part: str) -> bool:
    return part.count("'") % 2 == 0 and part.strip().strip('"').count('"') % 2 == 0


@pytest.mark.parametrize("block", CONSOLE, ids=str)
def test_what_a_console_block_shows_is_what_its_commands_print(block: pages.Block) -> None:
    here = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    todo = list(pages.steps(block.text))
    for step, (_, output) in zip(todo, pages.run(todo, {**os.environ, **here}), strict=True):
        assert step.shown, "a console block shows what its commands print; use sh for an example"
        assert step.agrees_with(output), f"$ {step.command}\n{output}"


def test_every_block_of_commands_says_whether_it_is_run_or_an_example() -> None:
    assert [str(block) for block in pages.blocks("bash", "shell", "shell-session", "zsh", "terminal")] == []
    bare = [match for page in pages.PAGES for match in re.findall(r"^```\n(\S+) ", page.read_text(), re.MULTILINE)]
    assert [word for word in bare if word in FIRST_WORDS] == []
    assert all(block.text.startswith("$ ") for block in pages.blocks("console"))


def test_every_example_begins_with_a_known_program() -> None:
    lines = [line for block in pages.blocks("sh") for line in pages.commands(block)]
    assert len(lines) > 10
    assert [line for line in lines if shlex.split(line, comments=True)[0] not in FIRST_WORDS] == []


@pytest.mark.parametrize("words", [call[1:] for call in calls("5spot", ".venv/bin/5spot")], ids=shlex.join)
def test_every_call_of_5spot_is_one_that_it_understands(words: list[str]) -> None:
    if words[0].startswith("-"):
        assert words in (["--version"], ["--help"])
        return
    if not {"-h", "--help"} & set(words):
        understood(words)


def understood(words: list[str]) -> None:
    """Reads the words as the command does, and raises if they make no sense to it."""
    command = chosen_command(words)
    assert command is not None, words[0]
    if command.own_parser:
        import_module(command.module).parser().parse_args(words[1:])
        return
    loaded, rest = load(words[0]), words[1:]
    while subcommands := getattr(loaded, "commands", None):
        loaded, rest = subcommands[rest[0]], rest[1:]
    loaded.make_context(words[0], rest)


def test_every_call_of_kubectl_has_a_verb_that_exists() -> None:
    found = calls("kubectl")
    assert len(found) > 20
    for words in found:
        plain = re.sub(r"(--(namespace|context|kubeconfig)|-n)[ =]\S+", "", " ".join(words[1:])).split()
        assert plain[0] in VERBS, words


def test_every_target_of_make_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (pages.ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join(page.read_text() for page in pages.PAGES)
    named = set(re.findall(r"`make ([a-z-]+)", text)) | {call[1] for call in calls("make")}
    assert {"docs", "demo", "test"} <= named
    assert named - targets == set()


MANIFESTS = [
    (block, document)
    for block in pages.blocks("yaml")
    for document in yaml.safe_load_all(block.text)
    if isinstance(document, dict) and document.get("kind") == "ScheduledMachine"
]


@pytest.mark.parametrize(("block", "manifest"), MANIFESTS, ids=lambda value: str(value)[:60])
def test_every_whole_scheduledmachine_of_a_page_would_be_stored(block: pages.Block, manifest: dict) -> None:
    verdict = check({**manifest, "metadata": {"namespace": "default", **manifest["metadata"]}})
    assert verdict.allowed, [str(violation) for violation in verdict.violations]


def test_every_yaml_of_a_page_can_be_read() -> None:
    assert all(list(yaml.safe_load_all(block.text)) for block in pages.blocks("yaml"))


def test_every_link_between_pages_and_into_the_checkout_leads_somewhere() -> None:
    for page in pages.PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(pages.ROOT)}: {target}"


FOLDERS = "agent|bench|certs|charts|crds|docs|examples|local|policies|release|service|tests|webhooks"


def test_every_path_of_the_checkout_that_a_page_names_exists() -> None:
    for page in pages.PAGES:
        for path in re.findall(rf"`((?:{FOLDERS})/[\w./-]+)", page.read_text()):
            assert (pages.ROOT / path.rstrip("./")).exists(), f"{page.relative_to(pages.ROOT)}: {path}"


ARCHITECTURE = (pages.ROOT / "docs" / "architecture.md").read_text()
TOURS = re.split(r"^### ", ARCHITECTURE, flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("tour", TOURS, ids=lambda tour: tour.splitlines()[0])
def test_a_tour_through_the_code_has_a_dozen_hops_at_most_and_never_goes_back(tour: str) -> None:
    hops = re.findall(rf"^\d+\. `((?:{FOLDERS})/[\w/]+\.py)`", tour, re.MULTILINE)
    assert 3 < len(hops) <= 12
    assert len(hops) == len(set(hops)) == len(re.findall(r"^\d+\. ", tour, re.MULTILINE))


def test_the_ladder_of_folders_is_the_one_that_lint_checks() -> None:
    contracts = tomllib.loads((pages.ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each.get("exhaustive")]
    modules = {"cli", "clock", "imports", "log", "metrics", "settings", "__main__", "reference"}
    steps = [set(layer.split(" | ")) - modules for layer in layers]
    listed = re.findall(r"^\| (\d+) \| `service/(\w+)(?:\.py)?` \|", ARCHITECTURE, re.MULTILINE)
    shown = [{name for step, name in listed if step == number} for number in dict(listed)]
    assert shown == [step for step in steps if step]


def test_every_metric_that_a_page_names_exists() -> None:
    known = {full_name(metric) for metric in declared()}
    for page in pages.PAGES:
        for name in re.findall(r"\bfivespot_[a-z_]*[a-z]\b", page.read_text()):
            assert name.removesuffix("_bucket") in known | {"fivespot_process"}, f"{page.name}: {name}"


def test_every_test_that_a_page_names_exists_and_is_still_called_so() -> None:
    named = [found for page in pages.PAGES for found in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text())]
    assert len(named) > 30
    missing = [(path, name) for path, name in named if not re.search(rf"def {name}\(", (pages.ROOT / path).read_text())]
    assert missing == []


def test_every_alert_of_the_chart_has_a_section_on_what_to_do() -> None:
    alerts = re.findall(r"^- alert: (\w+)$", (pages.ROOT / "charts/5spot/files/alerts.yaml").read_text(), re.MULTILINE)
    sections = re.findall(r"^### (\w+)$", (pages.ROOT / "docs" / "monitoring.md").read_text(), re.MULTILINE)
    assert len(alerts) > 5
    assert sorted(sections) == sorted(alerts)
