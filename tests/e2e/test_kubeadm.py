"""Machines that Cluster API's own bootstrap provider for kubeadm prepares, with its webhooks."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from crds import names
from crds.rules import check
from local.processes import Server
from local.provider.kinds import MACHINES
from service.kube.client import Client
from service.kube.resource import Resource
from tests.e2e.kubeadm import VERSION, kubeadm_configs, kubeadm_machine
from tests.e2e.manifests import NINE, SIX, condition, says
from tests.e2e.operator import Operator, operating
from tests.local.test_loopback import LOOPBACK, listening

Raw = dict[str, Any]
EXAMPLE = Path(__file__).parents[2] / "examples" / "kubeadm-aws.yaml"


def example() -> Raw:
    manifest: Raw = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    return manifest


@pytest.mark.usefixtures("kubeadm")
@pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])
async def test_a_machine_with_a_version_joins_by_kubeadm_and_leaves_again(
    management: Client, namespace: str, contract: str
) -> None:
    machines = Resource(names.CAPI_GROUP, contract, "machines", "Machine")
    template = {"version": VERSION, "failureDomain": "rack-4"}
    # The schema that the example is written for is that of v1beta2; v1beta1 gets none at all.
    config = example()["spec"]["bootstrapSpec"]["spec"] if contract == "v1beta2" else {}
    async with operating(management, namespace, NINE, capi_contract=contract) as op:
        await op.apply(kubeadm_machine(contract, config=config, machineTemplate=template))
        status = await op.ready("worker")
        assert status["machinePhase"] == "Running"
        spec = (await op.read(machines, "worker-machine"))["spec"]
        assert {name: spec[name] for name in template} == template
        # The provider writes a token and an endpoint into the object: no change of a value that the user set.
        stored = await op.read(kubeadm_configs(contract), "worker-bootstrap")
        assert stored["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"]["token"]
        assert says(await op.until("worker", lambda seen: says(seen, "UpToDate", "True")), "Ready", "True")

        op.clock.move_to(SIX)
        await op.phase("worker", "Inactive")
        await op.absent(kubeadm_configs(contract), "worker-bootstrap")


@pytest.mark.usefixtures("kubeadm")
async def test_without_a_version_no_bootstrap_data_is_ever_made_and_admission_says_so(op: Operator) -> None:
    body = await op.apply(kubeadm_machine(machineTemplate=None))
    (warning,) = check(body).warnings
    assert warning.startswith("spec.machineTemplate.version: is not set; most bootstrap providers")
    configs = kubeadm_configs("v1beta2")

    def tried(config: Raw) -> bool:
        """The token is the last that the provider adds before it looks at the Machine's version."""
        discovery = config.get("spec", {}).get("joinConfiguration", {}).get("discovery", {})
        return bool(discovery.get("bootstrapToken", {}).get("token"))

    config = await op.until_object(configs, "worker-bootstrap", tried)
    assert not config["status"].get("initialization", {}).get("dataSecretCreated")
    assert condition((await op.get("worker"))["status"], "Ready")["status"] == "False"

    await op.edit_spec("worker", machineTemplate={"version": VERSION})
    await op.until("worker", lambda seen: says(seen, "UpToDate", "False", "AppliesAtNextCreation"))
    assert "version" not in (await op.read(MACHINES, "worker-machine"))["spec"]


@pytest.mark.usefixtures("kubeadm")
async def test_a_duration_that_the_provider_writes_otherwise_is_no_drift(op: Operator) -> None:
    await op.apply(kubeadm_machine("v1beta1", config={"joinConfiguration": {"discovery": {"timeout": "90s"}}}))
    await op.ready("worker")
    stored = await op.read(kubeadm_configs("v1beta1"), "worker-bootstrap")
    assert stored["spec"]["joinConfiguration"]["discovery"]["timeout"] == "1m30s"
    await op.at_rest()
    assert says((await op.get("worker"))["status"], "UpToDate", "True")


@pytest.mark.usefixtures("kubeadm")
async def test_a_version_that_cluster_apis_webhook_writes_otherwise_is_no_drift(op: Operator) -> None:
    await op.apply(kubeadm_machine(machineTemplate={"version": VERSION.removeprefix("v")}))
    await op.ready("worker")
    machine = await op.read(MACHINES, "worker-machine")
    assert machine["spec"]["version"] == VERSION
    await op.at_rest()
    assert says((await op.get("worker"))["status"], "UpToDate", "True")
    assert (await op.read(MACHINES, "worker-machine"))["metadata"]["generation"] == machine["metadata"]["generation"]


@pytest.mark.usefixtures("kubeadm")
async def test_a_machine_that_cluster_apis_webhook_refuses_is_said_and_made_when_it_is_corrected(op: Operator) -> None:
    await op.apply(kubeadm_machine(machineTemplate={"version": f"{VERSION}-01"}))
    status = await op.phase("worker", "Error", "ProviderRejected")
    assert "must be a valid semantic version" in status["message"]
    await op.edit_spec("worker", machineTemplate={"version": VERSION})
    await op.ready("worker")


def test_the_providers_ports_are_on_loopback(kubeadm_provider: Server) -> None:
    assert kubeadm_provider.pid
    assert set(listening(kubeadm_provider.pid)) == {LOOPBACK}
