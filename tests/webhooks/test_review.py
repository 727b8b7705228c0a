import base64
from http import HTTPStatus

import orjson
import pytest

from tests.webhooks.reviews import UID, machine, review
from webhooks.review import (
    CAUSES_LIMIT,
    MESSAGE_LENGTH,
    WARNING_LENGTH,
    WARNINGS_LIMIT,
    Cause,
    MalformedReviewError,
    allow,
    parse,
    refuse,
    reject,
)


def parsed(given=None, **request):
    return parse(orjson.dumps(review(given or machine(), **request)))


def test_a_review_is_read():
    read = parsed()
    assert (read.uid, read.operation, read.namespace, read.name) == (UID, "CREATE", "default", "worker")
    assert read.object == machine()
    assert read.old is None


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"a": "\xc3\x28"}', "not JSON"),
        (b'"\\ud800"', "not JSON"),
        (b"NaN", "not JSON"),
        (b"[" * 40_000 + b"]" * 40_000, "must be an AdmissionReview"),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, "has no request"),
        (b"[]", "must be an AdmissionReview"),
        (b"{}", "has no request"),
        (b'{"request": {}}', "request.uid"),
        (b'{"request": {"uid": 7}}', "request.uid must be a text"),
        (b'{"request": {"uid": "' + b"u" * 300 + b'"}}', "request.uid"),
    ],
)
def test_what_cannot_be_read_is_said_without_a_uid(body: bytes, says: str):
    with pytest.raises(MalformedReviewError, match=says) as caught:
        parse(body)
    assert caught.value.uid == ""
    assert caught.value.status is HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"apiVersion": "admission.k8s.io/v1beta1"}, "only AdmissionReview of admission.k8s.io/v1"),
        ({"kind": "ConversionReview"}, "only AdmissionReview of admission.k8s.io/v1"),
    ],
)
def test_another_envelope_is_refused_under_its_uid(change: dict, says: str):
    with pytest.raises(MalformedReviewError, match=says) as caught:
        parse(orjson.dumps(review(machine()) | change))
    assert caught.value.uid == UID


@pytest.mark.parametrize(
    "request_part",
    [
        {"kind": {"group": "", "version": "v1", "kind": "Pod"}},
        {"kind": {"group": "5spot.finos.org", "version": "v1", "kind": "ScheduledMachine"}},
        {"kind": None},
        {"kind": "ScheduledMachine"},
        {"object": "a text"},
        {"object": [1]},
        {"oldObject": 3},
        {"operation": ["CREATE"]},
        {"namespace": {}},
    ],
)
def test_a_request_that_is_not_about_our_objects_is_refused_under_its_uid(request_part: dict):
    with pytest.raises(MalformedReviewError) as caught:
        parsed(**request_part)
    assert caught.value.uid == UID


def test_an_allowing_answer_is_short():
    assert orjson.loads(allow("u")) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u", "allowed": True},
    }


def test_warnings_are_bounded_in_number_and_length():
    warnings = orjson.loads(allow("u", ("x" * 1000,) * 100))["response"]["warnings"]
    assert len(warnings) == WARNINGS_LIMIT
    assert {len(warning) for warning in warnings} == {WARNING_LENGTH}


def test_a_patch_is_encoded_as_api_servers_expect():
    patch = [{"op": "add", "path": "/a", "value": 1}]
    response = orjson.loads(allow("u", patch=patch))["response"]
    assert response["patchType"] == "JSONPatch"
    assert orjson.loads(base64.b64decode(response["patch"])) == patch


def test_a_rejection_is_a_status_as_the_api_server_would_write_it():
    causes = [Cause("FieldValueRequired", "spec.a", "is required"), Cause("FieldValueInvalid", "spec.b", "is odd")]
    response = orjson.loads(reject(parsed(), causes))["response"]
    assert response["uid"] == UID
    assert response["allowed"] is False
    status = response["status"]
    assert (status["code"], status["reason"], status["status"]) == (422, "Invalid", "Failure")
    assert status["message"] == 'ScheduledMachine "worker" is invalid: spec.a: is required; spec.b: is odd'
    assert status["details"]["kind"] == "ScheduledMachine"
    assert status["details"]["causes"] == [
        {"reason": "FieldValueRequired", "field": "spec.a", "message": "is required"},
        {"reason": "FieldValueInvalid", "field": "spec.b", "message": "is odd"},
    ]


def test_a_rejection_with_very_many_causes_stays_bounded_and_says_how_many_there_were():
    causes = [Cause("FieldValueInvalid", "spec.a", "is odd")] * (CAUSES_LIMIT + 7)
    status = orjson.loads(reject(parsed(), causes))["response"]["status"]
    assert len(status["details"]["causes"]) == CAUSES_LIMIT
    assert status["message"].endswith("and 7 more")
    long = [Cause("FieldValueInvalid", "spec.a", "x" * 1000)] * 100
    assert len(orjson.loads(reject(parsed(), long))["response"]["status"]["message"]) == MESSAGE_LENGTH


def test_a_refusal_carries_the_code_it_is_given():
    status = orjson.loads(refuse("", HTTPStatus.BAD_REQUEST, "BadRequest", "no"))["response"]["status"]
    assert status == {"status": "Failure", "code": 400, "reason": "BadRequest", "message": "no"}
