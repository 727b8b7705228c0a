"""What the caches know after a write."""

from types import SimpleNamespace
from typing import Any

import pytest

from crds import names
from service.act.writer import Writer
from service.decide.world import Role
from service.kube.resource import Resource
from service.runtime.key import Key
from service.runtime.own_writes import OwnWrites
from tests.service.decide import builders

GADGETS = Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "gadgets", "Gadget")


@pytest.mark.parametrize(("labels", "kept"), [({names.LABEL_OWNER: "desk"}, True), ({}, False), (None, False)])
def test_an_object_outside_the_watch_is_returned_once_and_not_cached(labels: Any, *, kept: bool) -> None:
    cached: list[Any] = []
    informer = SimpleNamespace(absorb=cached.append)
    caches: Any = SimpleNamespace(informer_of=lambda _resource: informer)
    nothing: Any = None
    writer = Writer(nothing, caches, nothing, OwnWrites(lambda _key: None), nothing)
    metadata = {"name": "desk-infra", "namespace": "team", "uid": "another", "resourceVersion": "1", "labels": labels}
    subject: Any = SimpleNamespace(key=Key("team", "desk"))
    seen = writer.absorb_child(subject, builders.world(), Role.INFRASTRUCTURE, GADGETS, {"metadata": metadata})
    assert seen.foreign
    assert bool(cached) is kept
