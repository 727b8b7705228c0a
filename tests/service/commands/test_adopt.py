from types import SimpleNamespace
from typing import Any

import pytest

from crds import names
from service.cli import main
from service.commands import adoption
from service.kube.errors import Conflict
from service.kube.resource import Resource

MACHINES = Resource("cluster.x-k8s.io", "v1beta2", "machines", "Machine")


@pytest.mark.parametrize("words", [[], ["desk-7", "--all"], ["desk-7", "-A"], ["-A"]])
def test_it_says_what_it_wants(words, capsys):
    assert main(["adopt", *words]) == 2
    assert "name ScheduledMachines, or give --all" in capsys.readouterr().err


class Contested:
    """An API server on which another writer is always a moment quicker, for so many writes."""

    def __init__(self, conflicts: int) -> None:
        self.conflicts, self.reads = conflicts, 0

    async def get(self, _resource: Any, name: str, *, namespace: str) -> dict[str, Any]:
        self.reads += 1
        labels = {names.LABEL_OWNER: "desk", names.LABEL_MANAGED_BY: names.MANAGED_BY}
        return {
            "metadata": {"name": name, "namespace": namespace, "uid": "m", "resourceVersion": "1", "labels": labels}
        }

    async def patch(self, *_: Any, **__: Any) -> None:
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict("the object has been modified")


@pytest.mark.parametrize(("conflicts", "outcome"), [(2, "adopted"), (99, "failed")])
async def test_a_machine_that_cluster_api_writes_to_at_the_same_time_is_read_again_and_adopted(
    conflicts: int, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adoption, "PAUSE_SECONDS", 0.0)
    client: Any = Contested(conflicts)

    async def capi() -> Any:
        return SimpleNamespace(machines=MACHINES)

    async def resolve(*_: Any) -> None:
        return None

    discovery: Any = SimpleNamespace(capi=capi, resolve=resolve)
    raw = {"metadata": {"name": "desk", "namespace": "team", "uid": "u", "resourceVersion": "1", "generation": 1}}
    (result,) = await adoption.Adopter(client, discovery, {"u"}, dry_run=False).adopt(raw)
    assert (result.outcome, client.reads) == (outcome, min(conflicts + 1, adoption.ATTEMPTS))
