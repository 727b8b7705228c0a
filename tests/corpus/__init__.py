"""Manifests, valid and invalid, one reason each: a base, and per documented rule what to change in it."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One manifest with what every door should say of it; `old` is set for an update."""

    id: str
    rule: str
    manifest: dict[str, Any]
    valid: bool
    field: str = ""
    webhook_only: bool = False
    old: dict[str, Any] | None = None


def load() -> list[Case]:
    """The whole corpus."""
    whole = [Case(f"whole {index}", "whole", each, valid=True) for index, each in enumerate(_read("whole.yaml"))]
    rules = [rule for name in ("schedule.yaml", "fields.yaml", "taints.yaml") for rule in _read(name)]
    return [Case("base", "base", base(), valid=True), *whole, *(case for rule in rules for case in _cases(rule))]


def load_calendars() -> list[Case]:
    """The corpus of calendars, as ScheduleCalendars."""
    return [case for rule in _read("calendars.yaml") for case in _cases(rule, calendar)]


def calendar() -> dict[str, Any]:
    """The smallest allowed calendar."""
    return {
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduleCalendar",
        "metadata": {"name": "holidays", "namespace": "default"},
        "spec": {"dates": ["2026-12-24"]},
    }


def load_overrides() -> list[Case]:
    """The corpus of overrides."""
    return [case for rule in _read("overrides.yaml") for case in _cases(rule, override)]


def override() -> dict[str, Any]:
    """The smallest allowed override."""
    return {
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduleOverride",
        "metadata": {"name": "release-night", "namespace": "default"},
        "spec": {"machines": ["desk-7"], "state": "Open", "until": "2026-11-20T22:00:00Z"},
    }


def load_classes() -> list[Case]:
    """The corpus of classes."""
    return [case for rule in _read("classes.yaml") for case in _cases(rule, machine_class)]


def machine_class(**spec: Any) -> dict[str, Any]:
    """A small class with one parameter; keywords replace parts of its spec."""
    return {
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduledMachineClass",
        "metadata": {"name": "desk"},
        "spec": {
            "namespaceSelector": {},
            "parameters": [{"name": "address", "schema": {"type": "string"}}],
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                "kind": "K0sWorkerConfig",
                "spec": {"version": "v1.30.0+k0s.0"},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "RemoteMachine",
                "spec": {"address": "$(params.address)", "port": 22},
            },
        }
        | spec,
    }


def base() -> dict[str, Any]:
    """The smallest allowed manifest."""
    manifest: dict[str, Any] = _read("base.yaml")
    return manifest


def _read(name: str) -> Any:
    return yaml.safe_load((HERE / name).read_text(encoding="utf-8"))


def _cases(rule: dict[str, Any], smallest: Callable[[], dict[str, Any]] = base) -> Iterator[Case]:
    for kind in ("valid", "invalid"):
        for number, entry in enumerate(rule.get(kind, ())):
            yield _case(rule, kind, number, entry, smallest)


def _case(rule: dict[str, Any], kind: str, number: int, entry: Any, smallest: Callable[[], dict[str, Any]]) -> Case:
    manifest = smallest()
    is_detailed = isinstance(entry, dict) and not entry.keys().isdisjoint({"set", "unset", "value"})
    more = entry if is_detailed else {"value": entry}
    changes = dict(more.get("set", {}))
    if "value" in more:
        changes[rule["at"]] = more["value"]
    for path, value in changes.items():
        _put(manifest, path.split("."), _expanded(value))
    for path in more.get("unset", ()):
        _drop(manifest, path.split("."))
    old = {**smallest(), **rule["old"]} if "old" in rule else None
    return Case(
        id=f"{rule['rule']} [{kind} {number}]",
        rule=rule["rule"],
        manifest=manifest,
        valid=kind == "valid",
        field=more.get("field", ""),
        webhook_only=more.get("webhook_only", False),
        old=old,
    )


def _put(target: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        target = target[name]
    target[path[-1]] = value


def _drop(target: dict[str, Any], path: list[str]) -> None:
    for name in path[:-1]:
        target = target[name]
    del target[path[-1]]


def _expanded(value: Any) -> Any:
    """Spells out long texts and lists: `{repeat: a, times: 64}`, `{items: a, times: 101}`, `{copies: …, times: 51}`."""
    if isinstance(value, list):
        return [_expanded(each) for each in value]
    if not isinstance(value, dict):
        return copy.copy(value)
    if "repeat" in value:
        return value["repeat"] * value["times"] + value.get("then", "")
    if "items" in value and "times" in value:
        return [f"{value['items']}{number}" for number in range(value["times"])]
    if "copies" in value:
        return [copy.deepcopy(value["copies"]) for _ in range(value["times"])]
    return {key: _expanded(each) for key, each in value.items()}
