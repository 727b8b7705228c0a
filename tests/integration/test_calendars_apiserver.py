"""The CRDs of the calendars on a real API server: accepted, and as strict as the rules."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import yaml

from crds import names
from crds.generate import CALENDARS_FILE, POLICIES, ROOT
from local.cluster import LocalCluster
from service.kube.client import Client, PatchKind
from service.kube.decode import decoded
from service.kube.errors import NotFound, Rejected
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from service.kube.transport import Request
from tests.corpus import calendar, load_calendars
from tests.integration.policy_door import applied, documents
from tests.waiting import until
from webhooks.configuration import Registration, manifests

CALENDARS = Resource(names.GROUP, names.VERSION, names.CALENDAR_PLURAL, names.CALENDAR_KIND)
CLUSTER_CALENDARS = Resource(
    names.GROUP, names.VERSION, names.CLUSTER_CALENDAR_PLURAL, names.CLUSTER_CALENDAR_KIND, namespaced=False
)
STRICT = "dryRun=All&fieldValidation=Strict"


@pytest.fixture
async def client(small_cluster: LocalCluster) -> AsyncIterator[Client]:
    async with small_cluster.client() as found:
        for document in yaml.safe_load_all((ROOT / CALENDARS_FILE).read_text(encoding="utf-8")):
            name = document["metadata"]["name"]
            await found.patch(CUSTOM_RESOURCE_DEFINITIONS, name, document, kind=PatchKind.APPLY, force=True)
        for resource in (CALENDARS, CLUSTER_CALENDARS):
            await until(lambda resource=resource: _served(found, resource))
        yield found


async def _served(client: Client, resource: Resource) -> bool:
    try:
        await client.list(resource)
    except NotFound:
        return False
    return True


async def admits(client: Client, resource: Resource, manifest: dict[str, Any], namespace: str | None) -> bool:
    body = {**manifest, "metadata": {"name": manifest["metadata"]["name"]}}
    path = f"{resource.collection(namespace)}?{STRICT}"
    headers = {"Content-Type": "application/json"}
    request = Request("create", "POST", path, resource.plural, orjson.dumps(body), headers)
    try:
        await decoded(await client.transport.call(request))
    except Rejected:
        return False
    return True


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_schema_and_cel_judge_as_the_rules_but_for_the_list_of_countries(client: Client, namespace: str) -> None:
    cases = load_calendars()
    admitted = {case.id for case in cases if await admits(client, CALENDARS, case.manifest, namespace)}
    expected = {case.id for case in cases if case.valid or case.webhook_only}
    assert admitted == expected


async def test_with_the_policy_the_api_server_knows_the_countries_too(client: Client, namespace: str) -> None:
    cases = [case for case in load_calendars() if case.rule.startswith("holidays")]
    unknown = next(case for case in cases if case.webhook_only)
    async with applied(client, documents(POLICIES / "calendars.yaml"), namespace):
        await until(lambda: _refused(client, unknown.manifest, namespace))
        admitted = [case.id for case in cases if await admits(client, CALENDARS, case.manifest, namespace)]
    assert admitted == [case.id for case in cases if case.valid]


async def _refused(client: Client, manifest: dict[str, Any], namespace: str) -> bool:
    return not await admits(client, CALENDARS, manifest, namespace)


async def test_the_cluster_scoped_kind_is_as_strict(client: Client) -> None:
    good = calendar() | {"kind": names.CLUSTER_CALENDAR_KIND}
    assert await admits(client, CLUSTER_CALENDARS, good, None)
    assert not await admits(client, CLUSTER_CALENDARS, good | {"spec": {"dates": ["2026-02-30"]}}, None)


async def test_the_api_server_takes_the_webhooks_for_calendars(client: Client) -> None:
    account = "system:serviceaccount:5spot-system:5spot"
    registration = Registration("https://127.0.0.1:9443", service_account=account, calendars=True)
    for resource, manifest in zip((MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS), manifests(registration), strict=True):
        path = f"{resource.collection(None)}?{STRICT}"
        body, headers = orjson.dumps(manifest), {"Content-Type": "application/json"}
        made = await decoded(
            await client.transport.call(Request("create", "POST", path, resource.plural, body, headers))
        )
        assert len(made["webhooks"]) == len(manifest["webhooks"])


async def test_the_definitions_are_structural(client: Client) -> None:
    for plural in (names.CALENDAR_PLURAL, names.CLUSTER_CALENDAR_PLURAL):
        found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, f"{plural}.{names.GROUP}")
        conditions = {condition["type"]: condition["status"] for condition in found["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}
