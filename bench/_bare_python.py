"""The bare client in Python: an aiohttp session as anyone would write it, and nothing else."""

from typing import Any

import aiohttp
import orjson

from bench import _herd as herd
from bench._proc import Spent, Stopwatch
from local import access
from local.cluster import LocalCluster
from local.provider.kinds import BOOTSTRAPS, HOSTS, MACHINES
from service.kube.client import Client
from service.kube.resource import SCHEDULED_MACHINES

Raw = dict[str, Any]
Write = tuple[str, str, Raw]


def writes(raw: Raw, namespace: str, cluster_uid: str) -> list[Write]:
    """Method, path and body of what the operator writes for one object: three creations, and the whole status."""
    created = zip((BOOTSTRAPS, HOSTS, MACHINES), herd.manifests_of(raw, cluster_uid), strict=True)
    path = SCHEDULED_MACHINES.item(raw["metadata"]["name"], namespace, "status")
    return [
        *(("POST", resource.collection(namespace), body) for resource, body in created),
        ("PUT", path, {**raw, "status": herd.STATUS}),
    ]


async def run(cluster: LocalCluster, client: Client, namespace: str, stored: list[Raw], stopwatch: Stopwatch) -> Spent:
    """What these writes take for a whole herd, as many at once as the operator has workers."""
    uid = await herd.cluster_uid(client, namespace)
    prepared = [writes(raw, namespace, uid) for raw in stored]
    headers = {
        "Authorization": f"Bearer {cluster.access.tokens[access.OPERATOR]}",
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
    }
    tls = client.transport.endpoint.tls
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(ssl=tls)) as session:

        async def one(each: list[Write]) -> None:
            for method, path, body in each:
                async with session.request(method, cluster.url + path, data=orjson.dumps(body)) as answer:
                    orjson.loads(await answer.read())
                    answer.raise_for_status()

        stopwatch.start()
        await herd.gently(prepared, one)
        return stopwatch.spent()
