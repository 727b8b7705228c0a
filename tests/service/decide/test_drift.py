from typing import Any

import pytest

from crds import names
from service.decide.drift import SpecChange, changes_by_others, differences, same_value, shown

OURS = names.FIELD_MANAGER


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[("90s", "1m30s"), ("1h", "1h0m0s"), ("0.5h", "30m"), ("1500ms", "1.5s"), ("-90s", "-1m30s")],
        *[("1000m", "1"), ("1Gi", "1024Mi"), ("1k", 1000), ("0.5", "500m"), ("1e3", "1k"), (2, "2"), (2, 2.0)],
        *[("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z"), ("2026-01-01T00:00:00.7Z", "2026-01-01T00:00:00Z")],
    ],
)
def test_values_that_mean_the_same_are_no_difference(one, other):
    assert same_value(one, other)
    assert same_value(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[("90s", "91s"), ("1000m", "2"), ("1m", "1"), (1, True), ("true", True), (0, False), ("", 0), (None, "")],
        *[("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"), ("2026-01-01", "2026-01-02"), ("a", "b")],
        *[("1", "9" * 1000), ("1e9999999", "1"), ([], {}), ([1], [1, 2])],
    ],
)
def test_values_that_do_not_mean_the_same_are_a_difference(one, other):
    assert not same_value(one, other)


@pytest.mark.parametrize(
    ("wanted", "there", "paths"),
    [
        ({"a": 1}, {"a": 1, "added": "by the provider"}, []),
        ({}, {}, []),
        ({}, {"format": "cloud-config"}, []),
        ({"a": 1, "pruned": 2}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"a": 3, "b": 4}, ["spec.a", "spec.b"]),
        ({"disk": {"size": 1}}, {"disk": "size"}, ["spec.disk"]),
        ({"disks": [1, 2]}, {"disks": [1]}, ["spec.disks"]),
        ({"disks": [{"size": 1}, {"size": 2}]}, {"disks": [{"size": 1, "x": 1}, {"size": 3}]}, ["spec.disks[1].size"]),
        ({"timeout": "90s", "cpu": "1000m"}, {"timeout": "1m30s", "cpu": "1"}, []),
    ],
)
def test_differences_are_listed_by_path(wanted, there, paths):
    assert [shown(path) for path in differences(wanted, there)] == paths


def test_a_spec_nested_deeper_than_python_recurses_is_gone_through():
    wanted: dict[str, Any] = {"a": 1}
    there: dict[str, Any] = {"a": 2}
    for _ in range(5000):
        wanted, there = {"a": wanted}, {"a": there}
    assert len(differences(wanted, there)) == 1


def managed(manager, fields=None, *, version="v1", time="2026-01-01T00:00:00Z", **more):
    return {"manager": manager, "apiVersion": f"x/{version}", "time": time, "fieldsV1": fields or {}, **more}


def status_of(manager):
    return managed(manager, {"f:status": {"f:ready": {}}}, subresource="status")


def changes(wanted, there, *entries):
    return changes_by_others(wanted, {"metadata": {"managedFields": list(entries)}, "spec": there})


PORT: dict[str, Any] = {"f:spec": {"f:port": {}}}
OTHER: dict[str, Any] = {"f:spec": {"f:address": {}}}
LABELS: dict[str, Any] = {"f:metadata": {"f:labels": {"f:x": {}}}}


@pytest.mark.parametrize(
    ("ours", "others", "manager"),
    [
        pytest.param(PORT, [], None, id="a conversion, a default or a webhook wrote it otherwise"),
        pytest.param(PORT, [managed("kubectl-edit", OTHER)], None, id="a user edited another field"),
        pytest.param(OTHER, [managed("kubectl-edit", PORT)], "kubectl-edit", id="a person"),
        pytest.param(LABELS, [managed("kubectl-edit", PORT)], "kubectl-edit", id="a person changed all that we set"),
        pytest.param(
            OTHER, [managed("argocd-controller", PORT), status_of("manager")], "argocd-controller", id="GitOps"
        ),
        pytest.param(OTHER, [managed("manager", PORT), status_of("manager")], None, id="the provider"),
        pytest.param(
            OTHER,
            [managed("manager", {**PORT, "f:metadata": {"f:finalizers": {".": {}}}})],
            None,
            id="a provider that has written no status yet",
        ),
        pytest.param(
            OTHER, [managed("kubectl", PORT), status_of("kubectl")], "kubectl", id="a person who did the status too"
        ),
        pytest.param(
            OTHER,
            [managed("kubectl-edit", {"f:spec": {"f:sshPort": {}}}, version="v2"), status_of("manager")],
            "kubectl-edit",
            id="a person in a version where the field has another name",
        ),
        pytest.param(
            OTHER,
            [managed("manager", {"f:spec": {"f:sshPort": {}}}, version="v2"), status_of("manager")],
            None,
            id="the provider in a version where the field has another name",
        ),
        pytest.param(
            OTHER,
            [
                managed("manager", PORT),
                status_of("manager"),
                managed("kubectl-edit", PORT, time="2026-01-02T00:00:00Z"),
            ],
            "kubectl-edit",
            id="the provider, and a person after it",
        ),
        pytest.param(OTHER, [], None, id="no manager is recorded"),
    ],
)
def test_drift_is_what_neither_we_nor_the_provider_wrote(ours, others, manager):
    found = changes({"port": 22, "address": "a"}, {"port": 23, "address": "a"}, managed(OURS, ours), *others)
    assert found == (() if manager is None else (SpecChange("spec.port", manager),))


@pytest.mark.parametrize("entries", [[], [managed("velero", PORT)], [managed("kubectl-edit", PORT)]])
def test_without_a_record_of_our_creation_the_author_is_unknown(entries):
    assert changes({"port": 22}, {"port": 23}, *entries) == ()


DISK: dict[str, Any] = {".": {}, "f:name": {}, "f:size": {}}
DISKS = {"f:spec": {"f:disks": {'k:{"name":"a"}': DISK, 'k:{"name":"b"}': DISK}}}
FIRST_DISK = {"f:spec": {"f:disks": {'k:{"name":"a"}': DISK}}}
EVERYTHING = [f"spec.disks[{at}].{name}" for at in (0, 1) for name in ("name", "size")]
A, B = {"name": "a", "size": 1}, {"name": "b", "size": 2}


@pytest.mark.parametrize(
    ("there", "ours", "paths"),
    [
        pytest.param([A, B, {"name": "c"}], DISKS, [], id="the provider added one"),
        pytest.param([B, A], DISKS, [], id="another order"),
        pytest.param([A], FIRST_DISK, ["spec.disks"], id="a person took one away"),
        pytest.param([A, {**B, "size": 9}], FIRST_DISK, ["spec.disks[1].size"], id="a person changed one"),
        pytest.param([A, B, {"name": "c"}], {"f:spec": {"f:disks": {}}}, [], id="atomic, and ours"),
        pytest.param([B, A], OTHER, EVERYTHING, id="atomic, and a person's"),
    ],
)
def test_lists_are_compared_by_the_owners_of_their_items(there, ours, paths):
    person = managed("kubectl-edit", {"f:spec": {"f:disks": {}}})
    found = changes({"disks": [A, B]}, {"disks": there}, managed(OURS, ours), person)
    assert [change.path for change in found] == paths


def test_a_list_of_values_is_compared_by_values_and_positions():
    names_only: dict[str, Any] = {"f:spec": {"f:groups": {'v:"a"': {}, "i:1": {}}}}
    person = managed("kubectl-edit", {"f:spec": {"f:groups": {}}})
    assert changes({"groups": ["a", "b"]}, {"groups": ["a", "b", "c"]}, managed(OURS, names_only), person) == ()
    mangled: dict[str, Any] = {"f:spec": {"f:groups": {"v:{": {}, "x": {}}}}
    assert changes({"groups": ["a"]}, {"groups": []}, managed(OURS, mangled), person) != ()


@pytest.mark.parametrize("fields", [None, 5, {"f:spec": {}}])
def test_a_record_in_another_shape_is_ignored(fields):
    assert isinstance(changes({"a": 1}, {"a": 2}, managed(OURS, fields)), tuple)
