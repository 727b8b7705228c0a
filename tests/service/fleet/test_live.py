"""Objects that are reduced to what is shown: every change of that is heard, and no other."""

from typing import Any

from service.fleet.live import LiveView
from service.kube.resource import SCHEDULED_MACHINES
from service.runtime.key import Key

DESK = Key("team", "desk")
NO_CLIENT: Any = None


def stored(version: int, phase: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": "desk", "namespace": "team", "uid": "u", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {}, "status": {"phase": phase, **more}}


def view(heard: list[Key]) -> LiveView[str]:
    """Shows the phase, and keeps nothing but metadata."""
    found = LiveView[str](
        NO_CLIENT,
        SCHEDULED_MACHINES,
        lambda raw: str(raw["status"]["phase"]),
        slim=lambda raw: {"metadata": raw["metadata"]},
    )
    found.listen(heard.append)
    return found


def test_a_change_of_what_is_shown_is_heard_even_if_nothing_of_it_is_kept() -> None:
    heard: list[Key] = []
    found = view(heard)
    for version, phase in enumerate(("Pending", "Active", "Error", "Active"), start=1):
        found.absorb(stored(version, phase))
        assert (found.shown[DESK], len(heard)) == (phase, version)


def test_an_object_that_replaces_one_of_the_same_name_is_shown() -> None:
    heard: list[Key] = []
    found = view(heard)
    found.absorb(stored(1, "Active"))
    for version in (2, 3):
        another = stored(version, "Pending")
        another["metadata"]["uid"] = "another"
        found.absorb(another)
    assert found.shown == {DESK: "Pending"}


def test_a_change_of_what_is_neither_shown_nor_kept_is_not_heard() -> None:
    heard: list[Key] = []
    found = view(heard)
    for version in range(1, 5):
        found.absorb(stored(version, "Active", observedGeneration=version))
    assert heard == [DESK]
