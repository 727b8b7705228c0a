"""The MachineDrainRules of Cluster API: what is kept of them in memory, and which of them apply to a Machine."""

from collections.abc import Iterable
from typing import Any, Final

import orjson

from service.decide.drainrules import DrainRules, read_rules
from service.decide.world import World
from service.runtime.cache import Object
from service.runtime.informer import Informer
from service.runtime.key import Key

DRAIN_RULE_BYTES: Final = 64 * 1024
"""Of the spec of a MachineDrainRule: at most 64 selectors, and tenants write them."""


def rules_for(key: Key, world: World, informer: Informer | None) -> DrainRules:
    """The MachineDrainRules that apply to the Machine of a ScheduledMachine; a problem if they cannot be listed."""
    machine = world.our_machine
    if informer is None or machine is None:
        return DrainRules()
    if not informer.is_synced:
        return DrainRules(problem=f"MachineDrainRules cannot be listed: {informer.error or 'no answer yet'}")
    found = (informer.get(one) for one in informer.keys_by("namespace", key.namespace))
    labels = world.cluster.labels if world.cluster else {}
    return read_rules((raw for raw in found if raw is not None), machine.child.labels, labels)


def slim_drain_rule(raw: Object) -> Object:
    """A rule that is too large is kept without its spec, so that it counts as one that cannot be read."""
    kept = {name: raw["metadata"].get(name) for name in ("name", "namespace", "uid", "resourceVersion")}
    spec = raw.get("spec")
    return {"metadata": kept, "spec": spec if _is_small(spec) else None}


def _is_small(spec: Any) -> bool:
    try:
        return len(orjson.dumps(spec)) <= DRAIN_RULE_BYTES
    except orjson.JSONEncodeError:
        return False  # nested too deep


def _namespace_terms(raw: Object) -> Iterable[str]:
    yield raw["metadata"]["namespace"]


DRAIN_RULE_INDEXES: Final = {"namespace": _namespace_terms}
