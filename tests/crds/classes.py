"""Classes and their users, for tests."""

from typing import Any

from crds.classes import FoundClass, Tenancy, class_for, class_not_found
from crds.classrules import read_class
from tests.crds.machines import machine


def user(parameters: dict[str, Any] | None = None, *, of: str = "desk", **spec: Any) -> dict[str, Any]:
    """A ScheduledMachine that names a class."""
    manifest = machine(classRef={"name": of}, **spec)
    del manifest["spec"]["bootstrapSpec"], manifest["spec"]["infrastructureSpec"]
    if parameters is not None:
        manifest["spec"]["parameters"] = parameters
    return manifest


def tenancy(*classes: dict[str, Any], labels: dict[str, str] | None = None, only_classes: bool = False) -> Tenancy:
    """A namespace with these labels, in a cluster with these classes."""
    known: dict[str, FoundClass] = {each["metadata"]["name"]: read_class(each) for each in classes}
    return Tenancy(
        find=lambda name: class_for(known.get(name) or class_not_found(name), "default", labels or {}),
        only_classes=only_classes,
    )
