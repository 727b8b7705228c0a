"""Texts that come from a cluster and would be scripts, were they ever read as HTML."""

from typing import Any

from local.cluster import LocalCluster
from service.kube.client import Client
from service.kube.resource import EVENTS, SCHEDULE_CALENDARS, SCHEDULE_OVERRIDES, SCHEDULED_MACHINES
from tests.browser import scene
from tests.browser.conftest import OpenPage

SCRIPT = "<img src=x onerror=window.pwned=1><script>window.pwned=1</script>\"'`${1}"
PAGES = ("/fleet", "/week", "/machine/{namespace}/desk-0", "/overrides", "/calendars", "/report")


async def test_texts_from_a_cluster_stay_texts(
    opened: OpenPage, small_cluster: LocalCluster, client: Client, namespace: str
) -> None:
    await hostile(client, namespace)
    async with opened(small_cluster.kubeconfig, namespace) as page:
        for path in PAGES:
            await page.open(path.format(namespace=namespace))
            if path != "/report":
                await page.shows("onerror")
            assert await page.run("return [window.pwned ?? 0, document.querySelectorAll('[onerror]').length]") == [0, 0]
        assert page.complaints() == []


async def hostile(client: Client, namespace: str) -> None:
    """A machine, a calendar, an override and an Event with such texts wherever the API server takes them."""
    reported = scene.broken(0)
    reported |= {
        "message": SCRIPT,
        "conditions": [scene.condition("Ready", "False", "ClusterNotFound", SCRIPT, scene.NOW)],
    }
    reported["override"] = {
        "name": "o",
        "state": "Open",
        "until": "2026-11-19T00:00:00Z",
        "by": SCRIPT,
        "reason": SCRIPT,
    }
    body = scene.machine(0, namespace)
    await scene.store(client, SCHEDULED_MACHINES, body, namespace, reported)
    dates = [{"date": "2026-11-19", "name": SCRIPT[:60]}]
    ready = {
        "conditions": [scene.condition("Ready", "False", "CalendarInvalid", SCRIPT, scene.NOW)],
        "nextDates": dates,
    }
    ics = scene.FOUNDERS_DAY.replace("Founders' day", SCRIPT)
    calendar: Any = {"metadata": {"name": "uk-holidays", "namespace": namespace}, "spec": {"ics": {"inline": ics}}}
    await scene.store(client, SCHEDULE_CALENDARS, calendar, namespace, ready)
    override = {
        "machines": ["desk-0"],
        "state": "Open",
        "until": "2026-11-19T00:00:00Z",
        "reason": SCRIPT,
        "requestedBy": SCRIPT,
    }
    await scene.store(client, SCHEDULE_OVERRIDES, {"metadata": {"name": "o"}, "spec": override}, namespace, None)
    stored = await client.get(SCHEDULED_MACHINES, "desk-0", namespace=namespace)
    event = {
        **EVENTS.envelope(),
        "metadata": {"name": "e"},
        "eventTime": "2026-11-18T14:00:00.000000Z",
        "reportingController": "test",
        "reportingInstance": "test",
        "action": "Test",
        "reason": "Test",
        "type": "Warning",
        "note": SCRIPT,
        "regarding": {
            "kind": "ScheduledMachine",
            "name": "desk-0",
            "namespace": namespace,
            "uid": stored["metadata"]["uid"],
        },
    }
    await client.create(EVENTS, event, namespace=namespace)
