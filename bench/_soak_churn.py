"""What happens during a soak: users create, edit and delete, and a stand-in for Cluster API reacts."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from bench import _herd as herd
from bench._soak_result import Settings
from crds import names
from crds.base import rfc3339
from crds.overrides import OverrideState
from local.provider.kinds import BOOTSTRAPS, HOSTS, MACHINES
from service.clock import Clock
from service.kube.client import Client
from service.kube.errors import Conflict, KubeError, NotFound
from service.kube.resource import SCHEDULE_OVERRIDES, SCHEDULED_MACHINES
from service.runtime.informer import Informer

Raw = dict[str, Any]
HOLD = "bench.example/cluster-api"
CHILDREN = {"machine": MACHINES, "infra": HOSTS, "bootstrap": BOOTSTRAPS}
OVERRIDES_OF_EDITS = 0.25
FOREIGN = "foreign"
"""How names begin that another owner has taken."""


class Churn:
    """The users of one namespace, and a stand-in for Cluster API that deletes Machines together with their hosts."""

    def __init__(self, client: Client, namespace: str, happened: Counter[str], clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._happened = happened
        self._serial = 0
        self.held = asyncio.Queue[Raw]()
        """Machines that Cluster API should look at."""

    async def create(self) -> None:
        number, self._serial = self._serial, self._serial + 1  # also where the answer is lost
        raw = herd.scheduled_machine(number, opens_every_hour(random.randrange(60)))
        await self._client.create(SCHEDULED_MACHINES, raw, namespace=self._namespace)
        self._happened["objects created"] += 1

    async def create_foreign(self, number: int) -> dict[tuple[str, str], str]:
        """Children of another owner, and a ScheduledMachine that needs the same names; returns their versions."""
        name, versions = f"{FOREIGN}-{number}", {}
        for end, resource in CHILDREN.items():
            body = {
                **resource.envelope(),
                "metadata": {"name": f"{name}-{end}"},
                "spec": MACHINE_SPEC if end == "machine" else {},
            }
            stored = await self._client.create(resource, body, namespace=self._namespace)
            versions[end, f"{name}-{end}"] = stored["metadata"]["resourceVersion"]
        raw = herd.scheduled_machine(60_000 + number, opens_every_hour(0))
        raw["metadata"]["name"] = name
        await self._client.create(SCHEDULED_MACHINES, raw, namespace=self._namespace)
        return versions

    async def go_on(self, scheduled: Informer, settings: Settings, overrides: Informer | None = None) -> None:
        """Edits, deletes and creates, so that there are about so many objects; with `overrides`, overrides some."""
        while True:
            await asyncio.sleep(random.expovariate(settings.edits_per_second))
            mine = [key.name for key in scheduled if not key.name.startswith(FOREIGN)]
            with suppress(KubeError):
                if len(mine) < settings.objects:
                    await self.create()
                elif overrides is not None and random.random() < OVERRIDES_OF_EDITS:
                    await self._override(mine, [key.name for key in overrides], settings.objects // 4)
                else:
                    await self._edit(random.choice(mine))

    async def _override(self, machines: list[str], overrides: list[str], most: int) -> None:
        """Creates an override for a machine or a few, or moves the end of one, or deletes one."""
        if overrides and (len(overrides) >= most or random.random() < 0.3):
            await self._end_override(random.choice(overrides))
            return
        begins = self._clock.now() + timedelta(minutes=random.randrange(40))
        until = begins + timedelta(minutes=random.randrange(1, 90))
        spec: Raw = {"machines": random.sample(machines, k=min(len(machines), random.choice((1, 1, 3))))}
        spec |= {"state": random.choice(tuple(OverrideState)).value, "until": rfc3339(until)}
        if random.random() < 0.5:
            spec["from"] = rfc3339(begins)
        metadata = {"generateName": "override-"}
        body = {**SCHEDULE_OVERRIDES.envelope(), "metadata": metadata, "spec": spec}
        await self._client.create(SCHEDULE_OVERRIDES, body, namespace=self._namespace)
        self._happened["overrides created"] += 1

    async def _end_override(self, name: str) -> None:
        if random.random() < 0.5:
            await self._client.delete(SCHEDULE_OVERRIDES, name, namespace=self._namespace)
            self._happened["overrides deleted"] += 1
            return
        until = self._clock.now() + timedelta(minutes=random.randrange(60))
        body = {"spec": {"until": rfc3339(until)}}
        await self._client.patch(SCHEDULE_OVERRIDES, name, body, namespace=self._namespace)
        self._happened["ends of overrides moved"] += 1

    async def _edit(self, name: str) -> None:
        what, body = random.choice(EDITS)()
        if body is None:
            await self._client.delete(SCHEDULED_MACHINES, name, namespace=self._namespace)
        else:
            await self._client.patch(SCHEDULED_MACHINES, name, body, namespace=self._namespace)
        self._happened[what] += 1

    async def play_cluster_api(self) -> None:
        while True:
            raw = await self.held.get()
            try:
                await self._as_cluster_api(raw)
            except (NotFound, Conflict):
                continue
            except KubeError:
                self.held.put_nowait(raw)

    async def _as_cluster_api(self, raw: Raw) -> None:
        meta, where = raw["metadata"], self._namespace
        held = HOLD in meta.get("finalizers", ())
        if not held and "deletionTimestamp" not in meta:
            await self._client.patch(MACHINES, meta["name"], _finalizers(meta, [HOLD]), namespace=where)
        elif held and "deletionTimestamp" in meta:
            await asyncio.sleep(random.random())
            base = meta["name"].removesuffix(names.MACHINE_SUFFIX)
            for end in ("infra", "bootstrap"):
                with suppress(NotFound):
                    await self._client.delete(CHILDREN[end], f"{base}-{end}", namespace=where)
            await self._client.patch(MACHINES, meta["name"], _finalizers(meta, []), namespace=where)


MACHINE_SPEC = {
    "clusterName": "other",
    "bootstrap": {"dataSecretName": "none"},
    "infrastructureRef": {"apiGroup": HOSTS.group, "kind": HOSTS.kind, "name": "none"},
}


def opens_every_hour(minute: int) -> Raw:
    """Half of every hour, from some minute on."""
    return {"cron": f"{minute} * * * *", "duration": "30m", "timezone": "UTC", "enabled": True}


def _finalizers(meta: Raw, wanted: list[str]) -> Raw:
    return {"metadata": {"uid": meta["uid"], "finalizers": wanted}}


LEADS = (None, "2m", "5m")
EDITS: tuple[Callable[[], tuple[str, Raw | None]], ...] = (
    lambda: ("schedules edited", {"spec": {"schedule": {"cron": f"{random.randrange(60)} * * * *"}}}),
    lambda: (
        "leads edited",
        {"spec": {"schedule": {key: random.choice(LEADS) for key in ("startEarly", "stopEarly")}}},
    ),
    lambda: ("schedules switched on or off", {"spec": {"schedule": {"enabled": random.random() < 0.7}}}),
    lambda: ("kill switches", {"spec": {"killSwitch": random.random() < 0.4}}),
    lambda: ("other edits", {"spec": {"priority": random.randrange(256)}}),
    lambda: ("objects deleted", None),
)
