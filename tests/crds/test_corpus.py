"""One rulebook, four doors: webhook, command line and reconciler on the corpus; the API server has its own test."""

import json
from collections import Counter
from pathlib import Path

import orjson
import pytest

from crds.rules import check
from service.cli import main
from tests.corpus import Case, load
from tests.webhooks.reviews import at_once, review
from webhooks.review import parse
from webhooks.verdict import Gate

CASES = load()
INVALID = [case for case in CASES if not case.valid]
UNKNOWN_FIELDS = {
    "unknown fields are rejected",
    "unknown envelope keys are rejected",
    "a taint has key and effect and nothing unknown",
}
"""Where they are ignored in stored objects: everywhere but in the schedule."""


def test_the_corpus_is_large_and_has_three_invalid_manifests_for_every_rule() -> None:
    assert len(CASES) >= 150
    assert len({case.id for case in CASES}) == len(CASES)
    assert min(Counter(case.rule for case in INVALID).values()) >= 3


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_rules_name_the_one_thing_that_is_wrong(case: Case) -> None:
    verdict = check(case.manifest, old=case.old)
    assert [violation.field for violation in verdict.violations] == ([] if case.valid else [case.field])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_webhook_agrees(case: Case) -> None:
    body = orjson.dumps(review(case.manifest, old=case.old))
    response = orjson.loads(at_once(Gate().validate(parse(body))).body)["response"]
    assert response["allowed"] is case.valid
    causes = response.get("status", {}).get("details", {}).get("causes", [])
    assert [cause["field"] for cause in causes] == ([] if case.valid else [case.field])


def test_the_command_line_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    created = [case for case in CASES if case.old is None]
    manifests = tmp_path / "corpus.yaml"
    manifests.write_text("\n---\n".join(json.dumps(case.manifest) for case in created), encoding="utf-8")
    assert main(["validate", "-f", str(manifests), "-o", "json"]) == 1
    verdicts = json.loads(capsys.readouterr().out)
    assert [verdict["allowed"] for verdict in verdicts] == [case.valid for case in created]
    assert [[violation["field"] for violation in verdict["violations"]] for verdict in verdicts] == [
        [] if case.valid else [case.field] for case in created
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_reconciler_creates_nothing_from_an_invalid_manifest_but_ignores_unknown_fields(case: Case) -> None:
    verdict = check(case.manifest, unknown="ignore")
    machine = verdict.written
    if case.valid or case.old is not None:
        assert machine is not None
    elif machine is not None:
        assert case.rule in UNKNOWN_FIELDS
        assert not case.field.startswith("spec.schedule")
    else:
        assert case.field in {violation.field for violation in verdict.violations}


@pytest.mark.parametrize("case", [case for case in CASES if case.valid], ids=lambda case: case.id)
def test_admission_and_reconciler_parse_into_the_same_class(case: Case) -> None:
    admitted = check(case.manifest).written
    stored = check(case.manifest, unknown="ignore").written
    assert admitted is not None
    assert stored is not None
    assert admitted == stored


@pytest.mark.parametrize("case", [case for case in CASES if case.valid], ids=lambda case: case.id)
def test_what_a_manifest_means_can_be_written_out_and_read_again(case: Case) -> None:
    spec = check(case.manifest, unknown="ignore").written
    assert spec is not None
    assert type(spec).parse(spec.to_json(), unknown="forbid") == spec
