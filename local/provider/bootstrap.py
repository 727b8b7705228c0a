"""K0sWorkerConfig: bootstrap data for a Machine, in a Secret that no host ever runs."""

from contextlib import suppress

from local.provider.kinds import BOOTSTRAPS
from local.provider.simulate import Simulation
from local.provider.view import FIELD_MANAGER, Management
from service.kube.decode import Object
from service.kube.errors import AlreadyExists
from service.kube.resource import SECRETS


async def reconcile(management: Management, config: Object) -> float:
    """Creates the Secret and reports it; returns the seconds until the next pass is due, 0 for none."""
    if config["metadata"].get("deletionTimestamp") or config.get("status", {}).get("ready"):
        return 0
    if management.machine_of(config) is None or management.paused(config):
        return 0
    simulation = Simulation.of(config)
    if left := management.seconds_left(config, simulation):
        return left
    status = management.failed_status(simulation)
    if status is None:
        status = {"ready": True, "dataSecretName": await _make_secret(management, config)}
    await management.report(BOOTSTRAPS, config, status)
    return 0


async def _make_secret(management: Management, config: Object) -> str:
    meta = config["metadata"]
    owner = {"name": meta["name"], "uid": meta["uid"], "controller": True, **BOOTSTRAPS.envelope()}
    name = f"{meta['name']}-data"
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": meta.get("labels") or {}, "ownerReferences": [owner]},
        "type": "cluster.x-k8s.io/secret",
        "stringData": {"value": "#cloud-config\n", "format": "cloud-config"},
    }
    with suppress(AlreadyExists):  # made before a restart of ours
        await management.client.create(SECRETS, secret, namespace=meta["namespace"], field_manager=FIELD_MANAGER)
    return name
