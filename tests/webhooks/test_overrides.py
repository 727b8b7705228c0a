"""Admission of overrides: who asks, and may they."""

import asyncio
import copy
from base64 import b64decode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import httpx
import orjson
import pytest

from crds import names
from tests.corpus import Case, load_overrides, override
from tests.webhooks.reviews import review
from tests.webhooks.test_routes import Tally, well_formed
from webhooks.answers import AdmissionOutcome, Answer
from webhooks.configuration import Registration, ServiceRef, manifests
from webhooks.overrides import OverrideGate, RightsUnknownError, User
from webhooks.review import parse
from webhooks.routes import create_app
from webhooks.verdict import Gate

ALICE: dict[str, Any] = {"username": "alice", "uid": "7", "groups": ["team"], "extra": {"x": ["y"]}}
BOB: dict[str, Any] = {"username": "bob"}
EVENING = datetime(2026, 11, 20, 18, tzinfo=UTC)


class Rights:
    """Remembers what was asked; denies what it was told to."""

    def __init__(self, *denied: str, error: str = "") -> None:
        self.denied, self.error = denied, error
        self.asked: list[tuple[Any, str, tuple[str, ...]]] = []

    async def __call__(self, user: User, namespace: str, machines: Sequence[str]) -> Sequence[str]:
        self.asked.append((user, namespace, tuple(machines)))
        if self.error:
            raise RightsUnknownError(self.error)
        return [each for each in machines if each in self.denied]


def gate(*denied: str, **options: Any) -> OverrideGate:
    return OverrideGate(**{"denied": Rights(*denied), "now": lambda: EVENING, **options})


def asked(given: dict[str, Any] | None, user: dict[str, Any] = ALICE, **options: Any) -> bytes:
    about = {"group": names.GROUP, "version": names.VERSION, "kind": names.OVERRIDE_KIND}
    return orjson.dumps(review(given, kind=about, userInfo=user, **options))


def by(user: str | None, **spec: Any) -> dict[str, Any]:
    """An override as it is after defaulting."""
    found = override()
    found["spec"] |= {"requestedBy": user, **spec}
    return found


def validated(given: dict[str, Any] | None, found: OverrideGate | None = None, **options: Any):
    judged = (found or gate()).validate(parse(asked(given, **options), names.OVERRIDE_KIND))
    answer = judged if isinstance(judged, Answer) else asyncio.run(_awaited(judged))
    return answer, orjson.loads(answer.body)["response"]


async def _awaited(judged: Any) -> Answer:
    answer: Answer = await judged
    return answer


def defaulted(given: dict[str, Any], **options: Any):
    answer = gate().default(parse(asked(given, **options), names.OVERRIDE_KIND))
    response = orjson.loads(answer.body)["response"]
    return answer, orjson.loads(b64decode(response["patch"])) if "patch" in response else response


@pytest.mark.parametrize("case", load_overrides(), ids=lambda case: case.id)
def test_the_webhooks_judge_as_the_rules(case: Case):
    manifest, old = copy.deepcopy(case.manifest), case.old
    if isinstance(manifest["spec"], dict) and "requestedBy" not in manifest["spec"] and old is None:
        manifest["spec"]["requestedBy"] = "alice"
    user = {"username": manifest["spec"].get("requestedBy") or "alice"}
    if manifest["spec"].get("requestedBy", "") is None:
        manifest["spec"]["requestedBy"] = "alice"
    answer, response = validated(manifest, old=old, user=user)
    assert response["allowed"] is case.valid
    assert list(answer.fields) == ([] if case.valid else [case.field])


# Who asks


def test_the_caller_is_written_into_a_new_override():
    answer, patch = defaulted(override())
    assert patch == [{"op": "add", "path": "/spec/requestedBy", "value": "alice"}]
    assert answer.outcome is AdmissionOutcome.DEFAULTED


def test_the_caller_may_write_the_name_and_no_other():
    assert defaulted(by("alice"))[0].outcome is AdmissionOutcome.ALLOWED
    answer, response = defaulted(by("bob"))
    assert answer.fields == ("spec.requestedBy",)
    assert "must be alice, the user who creates the override" in response["status"]["message"]
    assert validated(by("bob"))[0].fields == ("spec.requestedBy",)


def test_nothing_but_requested_by_is_ever_defaulted():
    given = override()
    given["spec"]["from"] = None
    _, patch = defaulted(given)
    assert [each["path"] for each in patch] == ["/spec/requestedBy"]


def test_moving_the_end_makes_the_caller_the_one_who_asks():
    later = "2026-11-20T23:00:00Z"
    for left in ("alice", None):
        _, patch = defaulted(by(left, until=later), old=by("alice"), user=BOB)
        assert patch == [{"op": "add", "path": "/spec/requestedBy", "value": "bob"}]
    assert defaulted(by("carol", until=later), old=by("alice"), user=BOB)[0].fields == ("spec.requestedBy",)
    assert validated(by("alice", until=later), old=by("alice"), user=BOB)[0].fields == ("spec.requestedBy",)


def test_an_update_that_leaves_the_end_alone_leaves_the_name():
    _, patch = defaulted(override(), old=by("alice"), user=BOB)
    assert patch == [{"op": "add", "path": "/spec/requestedBy", "value": "alice"}]
    assert defaulted(by("bob"), old=by("alice"), user=BOB)[0].fields == ("spec.requestedBy",)


def test_what_is_wrong_is_said_before_the_schema_says_it():
    answer, _ = defaulted(by("alice", machines=["A"], state="open"))
    assert answer.fields == ("spec.machines[0]", "spec.state")


# May they


def test_the_right_is_asked_for_each_machine_once_for_the_caller_as_the_api_server_knows_it():
    rights = Rights()
    _, response = validated(by("alice", machines=["a", "b", "a"]), gate(denied=rights))
    assert response["allowed"]
    assert rights.asked == [(ALICE, "default", ("a", "b"))]


def test_a_refusal_says_what_is_lacking_and_the_rule_that_grants_it():
    answer, response = validated(by("alice", machines=["a", "b"]), gate("b"))
    assert answer.outcome is AdmissionOutcome.FORBIDDEN
    assert response["status"]["code"] == 403
    assert response["status"]["message"] == (
        "user alice may not override ScheduledMachine b in namespace default: that needs the verb override on "
        "scheduledmachines.5spot.finos.org. A Role in that namespace grants it with the rule "
        "{apiGroups: [5spot.finos.org], resources: [scheduledmachines], resourceNames: [b], verbs: [override]}"
    )


def test_a_selector_needs_the_right_on_all_machines():
    found = by("alice", selector={"matchLabels": {"a": "b"}})
    del found["spec"]["machines"]
    rights = Rights("")
    _, response = validated(found, gate(denied=rights))
    assert rights.asked[0][2] == ("",)
    assert "may not override all ScheduledMachines in namespace default" in response["status"]["message"]
    assert "without resourceNames" in response["status"]["message"]


def test_what_cannot_be_found_out_is_refused():
    answer, response = validated(by("alice"), gate(denied=Rights(error="the API server did not answer within 2 s")))
    assert answer.outcome is AdmissionOutcome.FAILED
    assert response["allowed"] is False
    assert "did not answer within 2 s; try again" in response["status"]["message"]


def test_without_anyone_to_ask_everything_is_refused():
    assert validated(by("alice"), OverrideGate())[1]["allowed"] is False


def test_moving_the_end_of_an_override_needs_the_right_and_labels_do_not():
    rights = Rights("desk-7")
    moved = by("alice", until="2026-11-20T23:00:00Z")
    assert validated(moved, gate(denied=rights), old=by("alice"))[0].outcome is AdmissionOutcome.FORBIDDEN
    labelled = by("alice")
    labelled["metadata"]["labels"] = {"a": "b"}
    assert validated(labelled, gate(denied=rights), old=by("alice"), user=BOB)[1]["allowed"]
    assert len(rights.asked) == 1


def test_a_deletion_is_never_asked_about():
    rights = Rights("desk-7")
    answer, _ = validated(None, gate(denied=rights), old=by("alice"), operation="DELETE")
    assert (answer.outcome, rights.asked) == (AdmissionOutcome.NOT_JUDGED, [])


# Warnings


def test_a_machine_that_does_not_exist_yet_is_named():
    found = gate(machine_exists=lambda _namespace, name: name == "a")
    _, response = validated(by("alice", machines=["a", "b"]), found)
    (warning,) = response["warnings"]
    assert warning.startswith("spec.machines: there is no ScheduledMachine b in namespace default yet")
    assert "warnings" not in validated(by("alice"), gate(machine_exists=lambda *_: None))[1]


def test_an_end_too_far_ahead_or_in_the_past_is_warned_of():
    (far,) = validated(by("alice", until="2026-12-21T18:00:01Z"))[1]["warnings"]
    assert "at most 31 days after the override is accepted, 2026-12-21T18:00:00Z" in far
    assert "warnings" not in validated(by("alice", until="2026-12-21T18:00:00Z"))[1]
    (past,) = validated(by("alice", until="2026-11-20T18:00:00Z"))[1]["warnings"]
    assert "2026-11-20T18:00:00Z is in the past" in past


def test_of_an_accepted_override_the_limit_counts_from_then():
    old = by("alice") | {"status": {"acceptedAt": "2026-11-10T18:00:00Z"}}
    (far,) = validated(by("alice", until="2026-12-20T00:00:00Z"), old=old)[1]["warnings"]
    assert "2026-12-11T18:00:00Z" in far


# Endpoints


@pytest.fixture
def tally() -> Tally:
    return Tally()


async def test_both_endpoints_answer(tally: Tally):
    transport = httpx.ASGITransport(create_app(Gate(overrides=gate()), tally))
    async with httpx.AsyncClient(transport=transport, base_url="https://webhooks") as client:
        for path in (names.MUTATE_OVERRIDE_PATH, names.VALIDATE_OVERRIDE_PATH):
            answer = await client.post(path, content=asked(by("alice")))
            assert well_formed(answer)["allowed"] is True
        wrong = await client.post(names.VALIDATE_OVERRIDE_PATH, content=orjson.dumps(review(by("alice"))))
        assert "only ScheduleOverride of" in well_formed(wrong)["status"]["message"]
    assert tally.seen == [("default", "allowed"), ("validate", "allowed"), ("validate", "malformed")]


async def test_an_error_while_asking_is_answered_and_refuses(tally: Tally):
    async def broken(*_: Any) -> Sequence[str]:
        raise RuntimeError("a bug")

    transport = httpx.ASGITransport(create_app(Gate(overrides=gate(denied=broken)), tally))
    async with httpx.AsyncClient(transport=transport, base_url="https://webhooks") as client:
        answer = await client.post(names.VALIDATE_OVERRIDE_PATH, content=asked(by("alice")))
    assert orjson.loads(answer.content)["response"]["allowed"] is False
    assert tally.seen == [("validate", "internal_error")]


@pytest.mark.parametrize("user", [None, {}, {"username": 7}, {"username": ""}, {"username": "a" * 2000}])
def test_a_caller_that_makes_no_sense_gets_nothing(user):
    body = orjson.loads(asked(override()))
    body["request"]["userInfo"] = user
    parsed = parse(orjson.dumps(body), names.OVERRIDE_KIND)
    answer = gate().default(parsed)
    assert orjson.loads(answer.body)["response"]["allowed"] is False


def test_the_api_server_asks_about_overrides_only_where_the_kind_is_installed():
    service = ServiceRef("5spot-system", "5spot")
    mutating, validating = manifests(Registration(service, service_account="me", overrides=True))
    for configuration, count in ((mutating, 2), (validating, 2)):
        assert len(configuration["webhooks"]) == count
        last = configuration["webhooks"][-1]
        assert last["rules"][0]["resources"] == ["scheduleoverrides"]
        assert last["rules"][0]["operations"] == ["CREATE", "UPDATE"]
        assert last["failurePolicy"] == "Fail"
    for configuration in manifests(Registration(service)):
        assert len(configuration["webhooks"]) == 1
