import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from crds.reasons import CalendarConditionReason, OverrideConditionReason
from crds.status import MachinePhase, Phase
from service.decide.condition_types import EVENTS, REASONS_OF, ConditionType
from service.decide.conditions import _BY_PHASE
from service.decide.reasons import ProviderReason, Reason, Severity, read_reason
from service.kube import errors

LISTED = {reason for by_status in REASONS_OF.values() for reasons in by_status.values() for reason in reasons}
OF_OTHER_KINDS = [*OverrideConditionReason, *CalendarConditionReason]
SERVICE = Path(__file__).parents[3] / "service"


def literals(path: Path) -> Iterator[str]:
    """Every text in a module that stands alone; enumerations are where words are defined."""
    tree = ast.parse(path.read_text())
    defined = {id(each) for node in tree.body if isinstance(node, ast.ClassDef) for each in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in defined:
            yield node.value


def test_no_module_writes_a_reason_as_text():
    words = {*map(str, Reason), *map(str, OF_OTHER_KINDS)} - {*Phase}
    found = {(path.name, word) for path in SERVICE.rglob("*.py") for word in literals(path) if word in words}
    assert found == {("errors.py", errors.NAMESPACE_TERMINATING)}, "the API server's word; compared below"


def test_every_reason_says_what_it_means():
    assert {reason for reason in (*Reason, *OF_OTHER_KINDS) if not reason.meaning.endswith(".")} == set()


def test_a_warning_says_what_to_do_unless_it_ends_by_itself():
    silent = {reason for reason in Reason if reason.severity is Severity.WARNING and not reason.remedy}
    assert silent == {Reason.CLUSTER_DELETING, Reason.CONNECTING, Reason.NAMESPACE_TERMINATING, Reason.NO_NODE}


def test_every_reason_is_listed_under_a_condition_or_as_an_event():
    assert set(Reason) - LISTED - set(EVENTS) == set()


def test_every_condition_type_has_reasons():
    assert set(REASONS_OF) == set(ConditionType)


def test_a_reason_is_plain_text_on_the_wire():
    assert f"{Reason.MACHINE_RUNNING}" == "MachineRunning"
    text: str = "MachineRunning"
    assert text == Reason.MACHINE_RUNNING


def test_a_stored_reason_is_read_back_as_itself():
    assert read_reason("Paused") is Reason.PAUSED


def test_a_providers_reason_stays_as_it_is_and_warns():
    word = read_reason("CreateError")
    assert (word, type(word), word.severity) == ("CreateError", ProviderReason, Severity.WARNING)


def test_the_api_servers_reason_for_a_namespace_that_is_being_deleted_is_a_reason_of_ours():
    assert errors.NAMESPACE_TERMINATING == Reason.NAMESPACE_TERMINATING


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (errors.Forbidden, Reason.FORBIDDEN),
        (errors.QuotaExceeded, Reason.QUOTA_EXCEEDED),
        (errors.Denied, Reason.REJECTED),
        (errors.Invalid, Reason.INVALID),
        (errors.Unauthorized, Reason.UNAUTHORIZED),
        (errors.NotFound, Reason.NOT_FOUND),
        (errors.TooManyRequests, Reason.API_UNAVAILABLE),
        (errors.Conflict, Reason.API_UNAVAILABLE),
    ],
)
def test_a_class_of_errors_has_the_reason_of_its_name_or_of_its_base(kind, reason):
    assert Reason.for_error(kind) is reason


def test_the_reason_of_a_machine_phase_is_its_name_after_machine():
    assert {phase: str(reason) for phase, reason in _BY_PHASE.items()} == {
        phase: f"Machine{phase}" for phase in MachinePhase if phase is not MachinePhase.RUNNING
    }
