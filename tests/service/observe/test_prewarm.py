"""Which caches a replica opens for objects that are not its own."""

import pytest

from crds.providers import ProviderPolicy
from service.observe.prewarm import wanted_kinds
from tests.e2e.manifests import machine

POLICY = ProviderPolicy()
BOOTSTRAP = ("bootstrap.cluster.x-k8s.io/v1beta1", "K0sWorkerConfig")
HOST = ("infrastructure.cluster.x-k8s.io/v1beta1", "RemoteMachine")


def test_both_provider_kinds_of_an_object_are_wanted():
    assert list(wanted_kinds(machine(), POLICY)) == [BOOTSTRAP, HOST]


@pytest.mark.parametrize(
    "envelope",
    [
        {"apiVersion": "v1", "kind": "Secret"},
        {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "K0sWorkerConfigTemplate"},
        {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "RemoteMachine"},
        {"apiVersion": 1, "kind": "K0sWorkerConfig"},
        {"kind": "K0sWorkerConfig"},
        "K0sWorkerConfig",
        None,
    ],
)
def test_what_may_not_be_created_is_not_watched_either(envelope):
    assert list(wanted_kinds(machine(bootstrapSpec=envelope), POLICY)) == [HOST]


@pytest.mark.parametrize("raw", [{}, {"spec": None}, {"spec": "x"}, {"spec": {}}])
def test_a_malformed_object_wants_nothing(raw):
    assert list(wanted_kinds(raw, POLICY)) == []
