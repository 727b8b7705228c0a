"""Who enabled a schedule, from the field managers of the object."""

from typing import Any

import pytest

from service.observe.field_managers import author_of_enabled

ENABLED: dict[str, Any] = {"f:spec": {"f:schedule": {"f:enabled": {}}}}


def entry(manager, fields=ENABLED, time="2026-03-02T10:00:00Z", **more):
    return {"manager": manager, "fieldsV1": fields, "time": time, **more}


@pytest.mark.parametrize(
    ("entries", "author"),
    [
        ([entry("argocd-controller")], "argocd-controller"),
        ([entry("a"), entry("b", time="2026-03-02T10:00:01Z")], "b"),
        ([entry("b", time="2026-03-02T10:00:01Z"), entry("a")], "b"),
        ([entry("a", {"f:spec": {"f:priority": {}}})], None),
        ([entry("a", {"f:spec": {"f:schedule": {"f:timezone": {}}}}), entry("b")], "b"),
        ([entry("a", subresource="status")], None),
        ([entry("a", None)], None),
        ([], None),
    ],
)
def test_the_last_one_to_set_the_field_is_its_author(entries, author):
    assert author_of_enabled({"metadata": {"managedFields": entries}}) == author


def test_an_object_without_field_managers_has_no_author():
    assert author_of_enabled({"metadata": {}}) is None
