"""Who may override, with real tokens on a real API server: once with webhooks, once with the policy instead of them."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from crds import names
from crds.base import rfc3339
from local.binaries import Assets
from local.cluster import LocalCluster
from service.kube.client import Client, PatchKind
from service.kube.errors import Denied, Forbidden, Rejected
from service.kube.resource import SCHEDULE_OVERRIDES
from tests.charts.helm import Helm
from tests.integration.override_door import DOORS, SPARES, UNTIL, Door, override_door

Raw = dict[str, Any]
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=DOORS)
async def door(
    request: pytest.FixtureRequest,
    small_cluster: LocalCluster,
    assets: Assets,
    helm: Helm,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Door]:
    async with override_door(request.param, small_cluster, assets, helm, tmp_path_factory.mktemp("users")) as found:
        yield found


async def test_a_user_opens_and_closes_the_machine_that_a_role_names_and_is_written_down(door: Door) -> None:
    for state in ("Open", "Closed", "Scheduled"):
        stored = await door.create(door.alice, door.body(f"mine-{state.lower()}", "alice", state=state))
        assert stored["spec"]["requestedBy"] == door.accounts["alice"].name


@pytest.mark.parametrize("state", ["Open", "Closed", "Scheduled"])
async def test_a_user_neither_opens_nor_closes_another_machine(door: Door, state: str) -> None:
    said = await door.refused(door.alice, door.body("others", "alice", machines=["desk-8"], state=state))
    assert "desk-8" in said
    assert "verb override" in said


async def test_a_machine_among_others_needs_the_right_as_well(door: Door) -> None:
    mine = ["desk-7", *SPARES]
    assert "desk-99" in await door.refused(door.alice, door.body("several", "alice", machines=[*mine, "desk-99"]))
    await door.create(door.alice, door.body("several", "alice", machines=mine))


async def test_a_selector_needs_the_right_on_all_machines(door: Door) -> None:
    selector = {"matchLabels": {"room": "1"}}
    said = await door.refused(door.alice, door.body("room", "alice", selector=selector))
    assert "verb override" in said
    stored = await door.create(door.platform, door.body("room", "platform", selector=selector))
    assert stored["spec"]["requestedBy"] == door.accounts["platform"].name


async def test_no_user_takes_the_name_of_another(door: Door) -> None:
    for client in (door.alice, door.platform, door.admin):
        said = await door.refused(client, door.body("forged", "alice", requestedBy=door.accounts["bob"].name))
        assert "requestedBy" in said


async def test_the_right_to_edit_everything_does_not_include_overrides(door: Door) -> None:
    assert "desk-7" in await door.refused(door.bob, door.body("bobs", "bob"))


async def test_the_end_of_anothers_override_moves_only_with_the_right_on_its_machines(door: Door) -> None:
    await door.create(door.platform, door.body("theirs", "platform", machines=["desk-7", "desk-8"]))
    later = rfc3339(UNTIL + timedelta(hours=1))
    name: Raw = {"requestedBy": door.accounts["alice"].name} if door.demands_name else {}
    assert "desk-8" in await door.refused_change(door.alice, "theirs", until=later, **name)
    name = {"requestedBy": door.accounts["bob"].name} if door.demands_name else {}
    assert "desk-7" in await door.refused_change(door.bob, "theirs", until=later, **name)


async def test_the_same_end_in_other_words_is_a_change_of_the_end(door: Door) -> None:
    await door.create(door.platform, door.body("respelled", "platform"))
    name: Raw = {"requestedBy": door.accounts["bob"].name} if door.demands_name else {}
    same = rfc3339(UNTIL).replace("Z", ".0Z")
    assert "desk-7" in await door.refused_change(door.bob, "respelled", until=same, **name)


async def test_an_override_that_is_replaced_as_a_whole_is_judged_as_one_that_is_patched(door: Door) -> None:
    stored = await door.create(door.platform, door.body("replaced", "platform"))
    for change in ({"machines": ["desk-8"]}, {"until": rfc3339(UNTIL + timedelta(hours=1))}):
        taken = {**stored, "spec": {**stored["spec"], **change, "requestedBy": door.accounts["bob"].name}}
        with pytest.raises((Denied, Rejected)):
            await door.bob.replace(SCHEDULE_OVERRIDES, "replaced", taken, namespace=door.namespace)
    kept = await door.admin.get(SCHEDULE_OVERRIDES, "replaced", namespace=door.namespace)
    assert kept["spec"] == stored["spec"]


async def test_server_side_apply_is_judged_as_any_other_write(door: Door) -> None:
    stored = await apply(door, "alice", "applied")
    assert stored["spec"]["requestedBy"] == door.accounts["alice"].name
    again = await apply(door, "alice", "applied")
    assert again["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
    for user, change in (
        ("alice", {"machines": ["desk-8"]}),
        ("alice", {"state": "Closed"}),
        ("bob", {"until": rfc3339(UNTIL + timedelta(hours=1))}),
        ("platform", {"requestedBy": door.accounts["bob"].name, "until": rfc3339(UNTIL + timedelta(hours=1))}),
    ):
        with pytest.raises((Denied, Rejected)):
            await apply(door, user, "applied", **change)
    with pytest.raises((Denied, Rejected)):
        await apply(door, "alice", "applied-to-another", machines=["desk-8"])
    taken = await apply(door, "platform", "applied", until=rfc3339(UNTIL + timedelta(hours=1)))
    assert taken["spec"]["requestedBy"] == door.accounts["platform"].name


async def apply(door: Door, user: str, name: str, **spec: Any) -> Raw:
    """As `kubectl apply --server-side --force-conflicts` does."""
    client: Client = getattr(door, user)
    stored: Raw = await client.patch(
        SCHEDULE_OVERRIDES,
        name,
        door.body(name, user, **spec),
        kind=PatchKind.APPLY,
        namespace=door.namespace,
        field_manager=user,
        force=True,
    )
    return stored


async def test_no_user_writes_when_an_override_was_accepted(door: Door) -> None:
    ahead = {"acceptedAt": "2099-01-01T00:00:00Z"}
    stored = await door.create(door.alice, {**door.body("ahead", "alice"), "status": ahead})
    assert "status" not in stored, "until may end so many days after that"
    for client in (door.alice, door.platform, door.bob):
        with pytest.raises(Forbidden):
            await client.patch(
                SCHEDULE_OVERRIDES, "ahead", {"status": ahead}, namespace=door.namespace, subresource="status"
            )


async def test_a_user_who_moves_the_end_becomes_the_one_who_requested_it(door: Door) -> None:
    await door.create(door.platform, door.body("handed-over", "platform"))
    later = rfc3339(UNTIL + timedelta(hours=1))
    name: Raw = {"requestedBy": door.accounts["alice"].name} if door.demands_name else {}
    stored = await door.change(door.alice, "handed-over", until=later, **name)
    assert stored["spec"]["requestedBy"] == door.accounts["alice"].name


async def test_no_user_can_change_anything_but_the_end(door: Door) -> None:
    await door.create(door.platform, door.body("fixed", "platform", reason="a reason"))
    for change in ({"state": "Closed"}, {"machines": ["desk-8"]}, {"reason": "another"}, {"from": rfc3339(UNTIL)}):
        assert "cannot change" in await door.refused_change(door.platform, "fixed", **change)
    assert "requestedBy" in await door.refused_change(door.alice, "fixed", requestedBy=door.accounts["alice"].name)


async def test_a_label_needs_no_right_to_override_and_keeps_the_name_of_who_requested_it(door: Door) -> None:
    await door.create(door.platform, door.body("labelled", "platform"))
    body = {"metadata": {"annotations": {names.ANNOTATION_KEEP: ""}}}
    stored = await door.bob.patch(SCHEDULE_OVERRIDES, "labelled", body, namespace=door.namespace)
    assert stored["spec"]["requestedBy"] == door.accounts["platform"].name


async def test_deleting_needs_only_the_right_to_delete(door: Door) -> None:
    await door.create(door.platform, door.body("short-lived", "platform"))
    await door.bob.delete(SCHEDULE_OVERRIDES, "short-lived", namespace=door.namespace)
