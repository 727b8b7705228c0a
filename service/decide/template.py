"""What `machineTemplate` puts on a Machine, and a note of its keys, so that keys removed from it are removed there."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from crds import names
from crds.scheduledmachine import ScheduledMachineSpec


@dataclass(frozen=True, slots=True)
class Wanted:
    """Labels and annotations as the template wants them; None stands for a key to remove."""

    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]


def at_creation(spec: ScheduledMachineSpec) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations for a new Machine."""
    template = spec.machine_template
    if template is None or not (template.labels or template.annotations):
        return {}, {}
    return dict(template.labels), {**template.annotations, names.ANNOTATION_TEMPLATE: _note(spec)}


def fixed_at_creation(spec: ScheduledMachineSpec) -> dict[str, str]:
    """The part of a Machine's spec that the template sets when the Machine is created, and that is not changed later.

    Both contracts have it under the same names.
    """
    template = spec.machine_template
    if template is None:
        return {}
    given = {"version": template.version, "failureDomain": template.failure_domain}
    return {name: value for name, value in given.items() if value is not None}


def on_machine(spec: ScheduledMachineSpec, annotations: Mapping[str, str]) -> Wanted:
    """Labels and annotations for a Machine that carries these annotations."""
    labels, wanted = at_creation(spec)
    before = _read(annotations.get(names.ANNOTATION_TEMPLATE))
    note = dict.fromkeys({names.ANNOTATION_TEMPLATE} & annotations.keys())
    return Wanted(
        labels={**dict.fromkeys(before.get("labels", ())), **labels},
        annotations={**note, **dict.fromkeys(before.get("annotations", ())), **wanted},
    )


def _note(spec: ScheduledMachineSpec) -> str:
    template = spec.machine_template
    parts = {"labels": template.labels, "annotations": template.annotations} if template else {}
    return json.dumps({name: sorted(part) for name, part in parts.items() if part}, separators=(",", ":"))


def _read(text: str | None) -> dict[str, list[str]]:
    """The note; empty if it is malformed."""
    try:
        parts = json.loads(text or "{}")
        return {name: [str(key) for key in parts.get(name, ())] for name in ("labels", "annotations")}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}
