"""Answers of an API server and the errors they become."""

import orjson
import pytest

from service.kube import errors
from service.kube.errors import MESSAGE_LIMIT, bounded, from_response, from_status


def answered(code, reason="", message="no", *, retry_after=None, **details):
    body = orjson.dumps({"kind": "Status", "reason": reason, "message": message, "details": details})
    return from_response(code, body, retry_after=retry_after, what="get pods")


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.Rejected),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.Rejected),
        (408, "Timeout", errors.Unavailable),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Expired),
        (413, "RequestEntityTooLarge", errors.Rejected),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.Unavailable),
        (503, "ServiceUnavailable", errors.Unavailable),
        (504, "Timeout", errors.Unavailable),
        (302, "", errors.Unavailable),
    ],
)
def test_the_class_says_what_to_do_next(code, reason, kind):
    error = answered(code, reason)
    assert type(error) is kind
    assert (error.status, error.reason) == (code, reason)


def test_an_api_server_that_is_still_starting_forbids_nothing():
    error = answered(403, "Forbidden", 'machines "m" is forbidden: not yet ready to handle request')
    assert type(error) is errors.Unavailable
    assert error.status == 503, "so that the request is retried, and counts as a failure of the server"


RBAC = 'hosts.infra.example is forbidden: User "a" cannot create resource "hosts" in API group "infra.example"'
POLICY = "hosts.infra.example \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"
QUOTA = 'hosts.infra.example "x" is forbidden: exceeded quota: q, requested: count/hosts=1, used: 1, limited: 1'
WEBHOOK = 'admission webhook "w" denied the request: no'
NAMESPACE = 'hosts.infra.example "x" is forbidden: unable to create new content in namespace a because it is being'


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (403, RBAC, errors.Forbidden),
        (403, NAMESPACE, errors.Forbidden),
        (403, f"{RBAC}: {WEBHOOK}, {POLICY}", errors.Forbidden),
        (403, POLICY, errors.Denied),
        (422, POLICY, errors.Invalid),
        (403, WEBHOOK, errors.Denied),
        (400, WEBHOOK, errors.Denied),
        (404, WEBHOOK, errors.Denied),
        (422, WEBHOOK, errors.Invalid),
        (409, WEBHOOK, errors.Conflict),
        (429, WEBHOOK, errors.TooManyRequests),
        (500, WEBHOOK, errors.Unavailable),
        (403, f"{WEBHOOK}: {RBAC}", errors.Denied),
        (403, QUOTA, errors.QuotaExceeded),
        (403, f"{WEBHOOK}: {QUOTA}", errors.Denied),
    ],
)
def test_the_beginning_of_the_message_shows_what_refused_a_request(code, message, kind):
    error = answered(code, "Forbidden", message)
    assert type(error) is kind
    assert message in error.message


def test_a_budget_that_forbids_an_eviction_is_named():
    cause = {"reason": "DisruptionBudget", "message": "The disruption budget web needs 2 healthy pods and has 2"}
    error = answered(429, "TooManyRequests", "Cannot evict pod", causes=[cause])
    assert isinstance(error, errors.Blocked)
    assert "disruption budget web needs 2" in error.message
    assert error.retry_after is None


@pytest.mark.parametrize(("header", "seconds"), [("10", 10.0), (None, None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)])
def test_how_long_the_server_wants_us_to_wait_is_kept(header, seconds):
    assert answered(429, retry_after=header).retry_after == seconds


@pytest.mark.parametrize("header", ["3600", "1e300", "inf"])
def test_but_retry_after_counts_for_a_minute_at_most(header):
    assert answered(503, retry_after=header).retry_after == errors.MAX_RETRY_AFTER


@pytest.mark.parametrize("header", ["0", "-5", "nan"])
def test_a_server_that_wants_no_pause_leaves_it_to_us(header):
    assert answered(429, retry_after=header).retry_after is None


@pytest.mark.parametrize(
    "nonsense",
    [
        {"details": "x"},
        {"details": {"causes": 5}},
        {"details": {"causes": ["x", None]}},
        {"details": {"retryAfterSeconds": [1]}},
        {"code": "many", "message": {}, "reason": 7},
    ],
)
def test_nonsense_from_a_server_is_that_servers_failure(nonsense):
    body = orjson.dumps({"kind": "Status", **nonsense})
    assert type(from_response(403, body, retry_after=None, what="list pods")) is errors.Forbidden
    assert isinstance(from_status(nonsense, what="watch nodes"), errors.KubeError)


def test_the_wait_is_also_found_in_the_body():
    assert answered(429, retryAfterSeconds=7).retry_after == 7.0


def test_causes_say_which_field_is_wrong():
    error = answered(422, "Invalid", causes=[{"reason": "FieldValueInvalid", "message": "bad", "field": "spec.x"}])
    assert error.causes == (errors.StatusCause("FieldValueInvalid", "bad", "spec.x"),)


def test_a_patch_meant_for_another_object_of_that_name_is_a_conflict():
    cause = {"reason": "FieldValueInvalid", "message": "field is immutable", "field": "metadata.uid"}
    assert type(answered(422, "Invalid", causes=[cause])) is errors.Conflict


def test_a_missing_object_and_a_missing_kind_differ():
    missing_object = answered(404, "NotFound", name="x", kind="pods")
    missing_kind = from_response(404, b"404 page not found\n", retry_after=None, what="get things")
    assert isinstance(missing_object, errors.NotFound)
    assert isinstance(missing_kind, errors.NotFound)
    assert not missing_object.missing_kind
    assert missing_kind.missing_kind


def test_an_answer_that_is_not_json_is_an_error_too():
    error = from_response(502, b"<html>internal \xff secrets</html>", retry_after=None, what="get pods")
    assert isinstance(error, errors.Unavailable)
    assert error.message == "get pods: Bad Gateway (502)"


def test_an_expired_watch_is_recognised_inside_its_stream():
    assert isinstance(from_status({"code": 410, "reason": "Expired", "message": "too old"}, what="w"), errors.Expired)


def test_messages_are_one_bounded_line():
    error = answered(500, message="a\nb\r\x1b[31m" + "x" * 10_000)
    assert len(error.message) <= MESSAGE_LIMIT
    assert error.message.isprintable()
    assert error.message.startswith("get pods: a b [31m")


def test_a_short_text_is_left_alone():
    assert bounded("all is well") == "all is well"
