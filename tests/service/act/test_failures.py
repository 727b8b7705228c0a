from datetime import timedelta

import pytest

from service.act.failures import failure_from
from service.decide.plan import Create, Uncordon
from service.decide.world import Role
from service.kube import errors
from service.workload.connection import WorkloadUnreachable

CREATE = Create(
    role=Role.INFRASTRUCTURE,
    manifest={"apiVersion": "infra.example/v1", "kind": "Host", "metadata": {"name": "desk-infra"}},
)
UNCORDON = Uncordon(node="node-7", uid="u")
ENDING = errors.from_status(
    {"code": 403, "reason": "Forbidden", "details": {"causes": [{"reason": "NamespaceTerminating"}]}}, what="create"
)


@pytest.mark.parametrize(
    ("action", "error", "reason"),
    [
        (CREATE, errors.AlreadyExists("x"), "ForeignObject"),
        (CREATE, errors.NotFound("x"), "ProviderNotFound"),
        (CREATE, errors.Invalid("x"), "ProviderRejected"),
        (CREATE, errors.Forbidden("x"), "Forbidden"),
        (CREATE, ENDING, "NamespaceTerminating"),
        (CREATE, errors.Denied("x"), "ProviderRejected"),
        (CREATE, errors.QuotaExceeded("x"), "QuotaExceeded"),
        (UNCORDON, errors.Denied("x"), "Rejected"),
        (UNCORDON, errors.Forbidden("x"), "Forbidden"),
        (UNCORDON, errors.Invalid("x"), "Rejected"),
        (UNCORDON, errors.Unauthorized("x"), "Unauthorized"),
        (UNCORDON, errors.Unavailable("x"), "APIUnavailable"),
        (UNCORDON, errors.TooManyRequests("x"), "APIUnavailable"),
        (UNCORDON, WorkloadUnreachable("x", reason="NoAnswer"), "WorkloadClusterUnreachable"),
    ],
)
def test_every_error_has_a_reason_to_compare(action, error, reason):
    failure = failure_from(action, error)
    assert (failure.reason, failure.action) == (reason, action)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (errors.AlreadyExists("x"), "Delete or rename it"),
        (errors.NotFound("no such kind"), "is the provider for infra.example/v1 installed? no such kind"),
        (errors.Invalid("spec.port: must be a number"), "spec.port: must be a number"),
        (ENDING, "its namespace is being deleted"),
    ],
)
def test_a_failed_creation_names_the_object_and_what_to_do(error, advice):
    message = failure_from(CREATE, error).message
    assert "Host desk-infra" in message
    assert advice in message


def test_how_long_the_server_asks_to_wait_is_passed_on():
    assert failure_from(UNCORDON, errors.TooManyRequests("x", retry_after=7)).retry_after == timedelta(seconds=7)
    assert failure_from(UNCORDON, errors.Unavailable("x")).retry_after is None
