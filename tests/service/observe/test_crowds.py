"""The ledger of turns: which share of a limit a shard has, and that Clusters and shards do not share a queue."""

from types import SimpleNamespace
from typing import Any

import pytest

from crds import names
from service.clock import ManualClock
from service.decide.lifecycle import decide
from service.objects.subject import Subject
from service.observe.crowds import CrowdOptions, Crowds
from service.runtime.key import Key
from tests.service.decide import builders
from tests.service.decide.builders import MORNING, cluster, intent, world

WATCHES: Any = SimpleNamespace(capi=None, scheduled=SimpleNamespace(keys_by=lambda *_: ()))
CLOCK = ManualClock(MORNING)


def crowds(shards: int, limit: int = 0) -> Crowds:
    options = CrowdOptions(limit, shards=shards, shard_number=lambda key: int(key.name.partition("-")[0]))
    return Crowds(WATCHES, lambda _key: None, CLOCK, lambda _key: None, options)


def asks(found: Crowds, name: str, *, annotation: str | None = None, **where: str) -> bool:
    """A machine asks for its turn to be created, and takes it if it is granted; names begin with their shard."""
    spec = intent(clusterName=where.get("cluster", "prod"))
    key = Key(where.get("namespace", "team"), name)
    subject = Subject.read(key, builders.stored(builders.raw_spec()), spec, CLOCK)
    annotations = {names.ANNOTATION_MAX_PROVISIONING: annotation} if annotation is not None else {}
    seen = found.offer(subject, world(cluster=cluster(annotations=annotations)))
    plan = decide(spec, seen, MORNING)
    found.settle(subject, seen, plan)
    return plan.reason != "WaitingForTurn"


@pytest.mark.parametrize(("limit", "shards", "share"), [(50, 1, 50), (50, 4, 13), (3, 2, 2), (1, 8, 1)])
def test_each_shard_has_its_part_of_the_limit_rounded_up(limit: int, shards: int, share: int) -> None:
    found = crowds(shards, limit)
    for shard in range(shards):
        granted = [asks(found, f"{shard}-{number}") for number in range(share + 2)]
        assert granted == [True] * share + [False] * 2


def test_the_annotation_of_the_cluster_outranks_the_setting() -> None:
    found = crowds(1, 1)
    assert [asks(found, f"0-{number}", annotation="2") for number in range(3)] == [True, True, False]
    assert all(asks(crowds(1, 1), f"0-{number}", annotation="0") for number in range(3))


def test_no_namespace_and_no_cluster_waits_for_another() -> None:
    found = crowds(1, 1)
    assert [asks(found, f"0-{number}") for number in range(3)] == [True, False, False]
    assert asks(found, "0-0", namespace="other-team")
    assert asks(found, "0-7", cluster="edge")
