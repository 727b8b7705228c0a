"""The pages on conditions and events name what the code can say, all of it and nothing else."""

import ast
import re
from pathlib import Path

import service
from crds.status import MachinePhase, Phase
from service.decide import contracts, selectors
from service.decide.drainrules import Behavior
from service.kube import errors
from tests.docs.pages import ROOT

SERVICE = Path(service.__file__).parent
SOURCES = (
    *(SERVICE / "decide").glob("*.py"),
    SERVICE / "act" / "troubles.py",
    SERVICE / "kube" / "connection.py",
    SERVICE / "observe" / "observer.py",
    SERVICE / "observe" / "kinds.py",
    SERVICE / "observe" / "agents.py",
)
CONDITIONS = (ROOT / "docs" / "reference" / "conditions.md").read_text()
EVENTS = (ROOT / "docs" / "reference" / "events.md").read_text()
WORD = re.compile(r"[A-Z][a-z]+[A-Za-z]*|CAPI[A-Za-z]+|APIUnavailable")
NOT_REASONS = {
    *("True", "False", "Unknown"),  # what a condition's status is
    *("Cluster", "Machine", "DaemonSet", "Situation", "World"),  # kinds, and types named ahead
    *("Connected",),  # what a World says of its workload cluster where a test does not care
    # Cluster API's own conditions, and reasons of them
    *(
        "HealthCheckSucceeded",
        "OwnerRemediated",
        "BootstrapConfigReady",
        "BootstrapReady",
        "InfrastructureReady",
        "NodeReady",
        "NodeHealthy",
    ),
    *("Deleting", *contracts.HOLD_UP, *contracts.STEPS),
    *(*Behavior, *selectors._OPERATORS),  # what MachineDrainRules and label selectors say
}
BY_CLASS = {kind.__name__ for kind in (errors.Rejected, errors.Forbidden, errors.Invalid, errors.Unauthorized)}
BY_PHASE = {f"Machine{phase}" for phase in MachinePhase}


def literals(source: Path) -> set[str]:
    tree = ast.walk(ast.parse(source.read_text()))
    texts = {node.value for node in tree if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {text for text in texts if WORD.fullmatch(text)}


SAID = set[str]().union({errors.NAMESPACE_TERMINATING}, *map(literals, SOURCES)) - NOT_REASONS


def named(page: str) -> set[str]:
    quoted = re.findall(r"`([A-Za-z]+)`", page)
    return {word for word in quoted if WORD.fullmatch(word)}


def first_column(page: str) -> set[str]:
    return set().union(*(named(row) for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)))


def test_every_word_that_the_code_can_say_is_on_a_page():
    assert len(SAID) > 60
    headings = set(re.findall(r"\w+", " ".join(re.findall(r"^## .*$", CONDITIONS, re.MULTILINE))))
    assert SAID - named(CONDITIONS) - named(EVENTS) - headings == set()


def test_every_reason_on_the_page_of_conditions_can_be_said():
    assert first_column(CONDITIONS) - SAID - BY_CLASS - BY_PHASE - set(Phase) == set()


def test_every_event_on_its_page_can_be_said():
    assert first_column(EVENTS) - SAID == set()


def test_where_troubleshooting_tells_to_look_at_the_events_it_names_events():
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    (section,) = [each for each in page.split("\n## ") if "Look at the events." in each]
    assert len(named(section)) > 4
    assert named(section) - first_column(EVENTS) == set()


def test_every_event_with_a_fixed_reason_has_a_row_with_its_type():
    source = (SERVICE / "decide" / "events.py").read_text()
    emitted = dict(re.findall(r'Notice\(\s*"([A-Za-z]+)"((?:[^()]|\([^()]*\))*)\)', source))
    assert len(emitted) > 15
    for reason, rest in emitted.items():
        row = next(line for line in EVENTS.splitlines() if line.startswith("|") and f"`{reason}`" in line)
        assert ("| Warning |" in row) == ("warning=True" in rest), reason


def test_every_phase_has_a_row_and_every_condition_a_heading():
    assert set(Phase) <= first_column(CONDITIONS.split("## Ready")[0])
    conditions = set(re.findall(r'Told\(\s*"([A-Za-z]+)"', (SERVICE / "decide" / "conditions.py").read_text()))
    headings = " ".join(re.findall(r"^## (.*)$", CONDITIONS, re.MULTILINE))
    assert len(conditions) == 12
    assert {kind for kind in conditions if kind not in headings} == set()
