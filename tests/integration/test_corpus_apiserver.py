"""The CRD's schema and CEL, alone on a real API server, against the corpus."""

import sys
from collections import Counter

from crds.rules import check
from local.cluster import LocalCluster
from service.kube.client import Client
from service.kube.resource import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from tests.corpus import Case, load
from tests.integration.api_door import admits, served

ENOUGH = 0.9


async def test_schema_and_cel_alone_stop_nine_in_ten_invalid_manifests_and_no_valid_one(
    small_cluster: LocalCluster, namespace: str
) -> None:
    cases = load()
    async with served(small_cluster) as client:
        assert not await webhooks_everywhere(client), "the CRD is to be tested alone"
        admitted = {case.id for case in cases if await admits(client, case, namespace)}

    invalid = [case for case in cases if not case.valid]
    stopped = [case for case in invalid if case.id not in admitted]
    sys.stdout.write(share_by_rule(invalid, stopped))
    assert not [case.id for case in cases if case.valid and case.id not in admitted]
    assert len(stopped) >= ENOUGH * len(invalid)
    # What the schema lets through is what the docs say only the webhook can know.
    assert {case.id for case in invalid if case.id in admitted} == {case.id for case in invalid if case.webhook_only}


async def test_what_the_schema_lets_through_the_rules_stop(small_cluster: LocalCluster, namespace: str) -> None:
    async with served(small_cluster) as client:
        let_through = [case for case in load() if case.webhook_only and await admits(client, case, namespace)]
    assert let_through
    assert not [case.id for case in let_through if check(case.manifest).allowed]


async def webhooks_everywhere(client: Client) -> list[str]:
    """Webhooks that would be asked about any namespace; those of other tests are bound to theirs."""
    found = [each for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS) for each in await client.list(kind)]
    return [hook["name"] for each in found for hook in each["webhooks"] if not hook.get("namespaceSelector")]


def share_by_rule(invalid: list[Case], stopped: list[Case]) -> str:
    """A table of what schema and CEL stop, rule by rule."""
    total, caught = Counter(case.rule for case in invalid), Counter(case.rule for case in stopped)
    lines = [f"{caught[rule]:4} of {count:3}  {rule}" for rule, count in total.items()]
    return "\n".join(["", *lines, f"{len(stopped):4} of {len(invalid):3}  all rules together\n"])
