import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crds.bounds import FIELDS_MAX
from crds.providers import ProviderPolicy
from crds.rules import check
from crds.unread import UNREAD
from tests.corpus import base
from tests.crds.machines import machine, nested, scheduled

SKIPPED = {"cron": "*/10 2 8-14 3 */7", "timezone": "America/New_York"}
"""Fires only in an hour that daylight saving leaves out."""
TAINT = {"key": "kubernetes.io/x", "effect": "NoSchedule"}
REF = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "worker-machine", "namespace": "default"}

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


def fields(manifest, **options):
    return [violation.field for violation in check(manifest, **options).violations]


def test_everything_wrong_is_listed_at_once():
    manifest = machine(
        name="w" * 54,
        schedule={"cron": "@daily", "hoursOfDay": [9], "duration": "1w", "zone": "UTC"},
        bootstrapSpec={"apiVersion": "apps/v1", "kind": "FooTemplate", "namespace": "kube-system"},
        priority="50",
        nodeTaints=[TAINT, {"key": "a", "effect": "x"}, {"key": "a", "effect": "x"}],
    )
    assert set(fields(manifest | {"extra": 1})) == {
        "metadata.name",
        "extra",
        "spec.schedule.cron",
        "spec.schedule.hoursOfDay[0]",
        "spec.schedule.duration",
        "spec.schedule.zone",
        "spec.bootstrapSpec.apiVersion",
        "spec.bootstrapSpec.kind",
        "spec.bootstrapSpec.namespace",
        "spec.bootstrapSpec.spec",
        "spec.priority",
        "spec.nodeTaints[0].key",
        "spec.nodeTaints[1].effect",
        "spec.nodeTaints[2].effect",
        "spec.nodeTaints[2]",
    }


def test_a_violation_names_field_value_and_what_is_allowed():
    (violation,) = check(machine(priority=300)).violations
    assert str(violation) == "spec.priority: 300: must be at most 255"


def test_an_integer_hour_gets_the_hint_to_quote_it():
    (violation,) = check(scheduled(hoursOfDay=[9])).violations
    assert 'put it in quotes, "9"' in violation.message


def test_a_time_that_yaml_made_a_number_of_gets_the_hint_to_quote_it():
    (violation,) = check(scheduled(windows=[{"from": 1110, "to": "20:00"}])).violations
    assert violation.field == "spec.schedule.windows[0].from"
    assert 'put it in quotes, "18:30"' in violation.message


def test_all_that_is_wrong_in_windows_is_listed_at_once():
    windows = [{"days": ["mo"], "from": "9:00", "to": "25:00"}, {"from": "09:00"}]
    found = check(scheduled(windows=windows, cron="0 9 * * *")).violations
    assert {violation.field for violation in found} == {
        "spec.schedule.windows",
        "spec.schedule.windows[0].days[0]",
        "spec.schedule.windows[0].from",
        "spec.schedule.windows[0].to",
        "spec.schedule.windows[1].to",
    }


def test_the_error_about_an_unknown_field_lists_the_known_ones():
    (violation,) = check(scheduled(daysOfWeek=["mon"], timeZone="UTC")).violations
    assert violation.field == "spec.schedule.timeZone"
    assert "timezone" in violation.message


def test_values_are_shown_bounded_and_without_control_characters():
    (violation,) = check(machine(clusterName="\x00\n" + "x" * 5000)).violations
    assert isinstance(violation.value, str)
    assert len(violation.value) <= 120
    assert violation.value.startswith(r"\x00\n")
    assert violation.value.isprintable()
    assert len(str(violation)) < 400


@pytest.mark.parametrize("raw", [None, 7, "text", [], [{}], {}, {"spec": []}, {"metadata": []}, {"spec": {}}])
def test_anything_at_all_gets_a_verdict(raw):
    verdict = check(raw)
    assert not verdict.allowed
    assert verdict.model is None


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["spec", "metadata", "status", "kind", "spec.schedule", "spec.schedule.cron"])
            | st.sampled_from(["spec.nodeTaints", "spec.machineTemplate", "spec.bootstrapSpec", "spec.priority"])
            | st.sampled_from(["metadata.creationTimestamp", "spec.schedule.hoursOfDay", "spec.killSwitch"])
            | st.sampled_from(["metadata.name", "metadata.labels", "metadata.generateName", "spec.killIfCommands"]),
            ANY_JSON,
        ),
        max_size=3,
    )
)
def test_whatever_stands_anywhere_the_verdict_is_plain_json_and_never_an_exception(changes):
    manifest = base()
    for path, value in changes:
        *parents, last = path.split(".")
        target: Any = manifest
        for name in parents:
            target = target.get(name) if isinstance(target, dict) else None
        if isinstance(target, dict):
            target[last] = value
    verdict = check(manifest, old=base())
    text = json.dumps([violation.to_json() for violation in verdict.violations], allow_nan=False)
    assert "Input should" not in text
    assert "is not allowed here" not in text, "every kind of violation has words of its own"
    check(manifest, unknown="ignore")


def test_generated_names_leave_room_for_what_the_server_appends():
    manifest = base()
    manifest["metadata"] = {"generateName": "g" * 48}
    assert not fields(manifest)
    manifest["metadata"] = {"generateName": "g" * 49}
    assert fields(manifest) == ["metadata.generateName"]


def test_a_document_without_namespace_counts_as_default():
    manifest = base()
    del manifest["metadata"]["namespace"]
    manifest["spec"]["bootstrapSpec"]["namespace"] = "default"
    assert not fields(manifest)


def test_metadata_must_make_sense_too():
    manifest = base()
    manifest["metadata"] |= {"labels": {"a": 1}, "namespace": "Not A Namespace", "creationTimestamp": None}
    assert fields(manifest) == ["metadata.labels[a]", "metadata.namespace"]


@pytest.mark.parametrize("garbage", ["yesterday", "2026-01-01", "0001-01-01T00:00:00+14:00", 5, {}, ""])
def test_a_time_that_is_none_is_refused_in_plain_words(garbage):
    manifest = base()
    manifest["metadata"]["creationTimestamp"] = garbage
    (violation,) = check(manifest).violations
    assert violation.field == "metadata.creationTimestamp"
    assert violation.message.endswith("like 2026-03-08T07:00:00Z")
    check(manifest, unknown="ignore")


def test_half_a_character_is_refused_in_plain_words():
    (violation,) = check(machine(killIfCommands=["\ud800"])).violations
    assert (violation.value, "half of a character" in violation.message) == ("\\ud800", True)


def test_another_version_is_rejected():
    assert fields(base() | {"apiVersion": "5spot.finos.org/v9"}) == ["apiVersion"]


def test_annotations_together_are_bounded_as_everywhere_in_kubernetes():
    annotations = {f"note-{n}": "ü" * 65_000 for n in range(2)}
    assert not fields(machine(machineTemplate={"annotations": annotations}))
    annotations["note-2"] = "x" * 3_000
    assert fields(machine(machineTemplate={"annotations": annotations})) == ["spec.machineTemplate.annotations"]


MANY = 100_000


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec", {f"k{n}": 1 for n in range(MANY)}),
        ("spec.machineTemplate", {"labels": {f"k {n}": 1 for n in range(MANY)}}),
        ("spec.machineTemplate", {"annotations": dict.fromkeys(map(str, range(MANY)))}),
        ("spec.nodeTaints", [1] * MANY),
        ("spec.nodeTaints", [{f"k{n}": 1 for n in range(MANY)}]),
        ("spec.killIfCommands", [1] * MANY),
        ("spec.schedule.daysOfWeek", ["x"] * MANY),
        ("metadata.labels", {f"k {n}": 1 for n in range(MANY)}),
        ("metadata.finalizers", [1] * MANY),
        ("more", dict.fromkeys(map(str, range(MANY)))),
    ],
)
def test_a_hundred_thousand_wrong_entries_get_a_short_answer(path, value):
    manifest = base()
    *parents, last = path.split(".")
    target = manifest
    for name in parents:
        target = target[name]
    target[last] = value
    assert 1 <= len(fields(manifest)) <= 2 * FIELDS_MAX
    assert len(fields(manifest | dict.fromkeys(map(str, range(MANY))), old=base())) >= 1


def test_unknown_fields_are_listed_in_one_order_and_those_of_the_metadata_too():
    manifest = machine() | {"zoo": 1, "bar": 2}
    manifest["metadata"] |= {"foo": "bar", "clusterName": "old"}
    assert fields(manifest) == ["metadata.clusterName", "metadata.foo", "bar", "zoo"]
    assert not fields(manifest, unknown="ignore")


def test_metadata_as_the_api_server_writes_it_is_known():
    manifest = machine()
    manifest["metadata"] |= {"managedFields": [], "ownerReferences": [], "selfLink": "", "generation": 1}
    assert not fields(manifest)


def test_an_empty_namespace_counts_as_absent():
    manifest = machine()
    manifest["metadata"]["namespace"] = ""
    manifest["spec"]["bootstrapSpec"]["namespace"] = "default"
    assert not fields(manifest)
    manifest["metadata"]["namespace"] = 0
    assert "metadata.namespace" in fields(manifest)


def test_a_cron_that_never_fires_is_named_beside_other_violations():
    assert fields(machine(priority=300, schedule=SKIPPED)) == ["spec.priority", "spec.schedule.cron"]


class TestPolicy:
    def test_the_operator_can_allow_other_groups(self):
        manifest = machine()
        manifest["spec"]["infrastructureSpec"]["apiVersion"] = "metal.example.com/v1"
        assert fields(manifest) == ["spec.infrastructureSpec.apiVersion"]
        assert not fields(manifest, policy=ProviderPolicy(infrastructure_groups=frozenset({"metal.example.com"})))

    def test_the_operator_can_refuse_other_kinds(self):
        policy = ProviderPolicy(refused_kinds=("Remote*",))
        assert fields(machine(), policy=policy) == ["spec.infrastructureSpec.kind"]

    def test_the_operator_can_allow_other_kinds(self):
        manifest = machine()
        manifest["spec"]["infrastructureSpec"]["kind"] = "BareMetalHost"
        manifest["spec"]["bootstrapSpec"]["kind"] = "Ignition"
        assert fields(manifest) == ["spec.bootstrapSpec.kind", "spec.infrastructureSpec.kind"]
        policy = ProviderPolicy(bootstrap_kinds=("*Config", "Ignition"), infrastructure_kinds=("Bare*Host",))
        assert not fields(manifest, policy=policy)

    def test_a_refused_kind_stays_refused_whatever_is_allowed(self):
        manifest = machine()
        manifest["spec"]["bootstrapSpec"]["kind"] = "K0sControllerConfig"
        assert fields(manifest, policy=ProviderPolicy(bootstrap_kinds=("*",))) == ["spec.bootstrapSpec.kind"]

    def test_the_refusal_of_a_kind_says_what_is_allowed(self):
        manifest = machine()
        manifest["spec"]["infrastructureSpec"]["kind"] = "Metal3DataClaim"
        (violation,) = check(manifest).violations
        assert violation.message.startswith("kind is not allowed here; allowed: *Machine, but not *Template, *List,")
        everything = ProviderPolicy(infrastructure_kinds=("A*", "B"), refused_kinds=())
        (violation,) = check(manifest, policy=everything).violations
        assert violation.message == "kind is not allowed here; allowed: A*, B"

    def test_kinds_that_discovery_calls_cluster_scoped_are_refused(self):
        policy = ProviderPolicy(cluster_scoped=frozenset({("infrastructure.cluster.x-k8s.io", "RemoteMachine")}))
        (violation,) = check(machine(), policy=policy).violations
        assert violation.field == "spec.infrastructureSpec.kind"
        assert "cluster-scoped" in violation.message


class TestUpdates:
    def test_an_object_stored_with_a_kind_that_is_refused_now_can_be_changed_elsewhere(self):
        old, new = machine(), machine(priority=60)
        for each in (old, new):
            each["spec"]["bootstrapSpec"]["kind"] = "K0sControllerConfig"
        assert check(new, old=old).allowed
        new["spec"]["infrastructureSpec"]["kind"] = "PooledRemoteMachine"
        assert fields(new, old=old) == ["spec.infrastructureSpec.kind"]

    def test_unrelated_changes_pass_where_the_old_object_broke_a_rule_already(self):
        old = machine(name="w" * 60, nodeTaints=[TAINT], clusterName="Old_Style")
        new = machine(name="w" * 60, nodeTaints=[TAINT], clusterName="Old_Style", priority=60)
        verdict = check(new, old=old)
        assert verdict.allowed
        assert verdict.model is None

    def test_what_the_update_breaks_itself_is_named(self):
        old, new = machine(nodeTaints=[TAINT]), machine(nodeTaints=[TAINT], priority=300)
        assert fields(new, old=old) == ["spec.priority"]

    def test_a_broken_field_changed_to_another_broken_value_is_named(self):
        assert fields(machine(clusterName="B_B"), old=machine(clusterName="A_A")) == ["spec.clusterName"]

    def test_an_entry_of_a_list_may_move(self):
        fine = {"key": "fine", "effect": "NoSchedule"}
        assert not fields(machine(nodeTaints=[fine, TAINT]), old=machine(nodeTaints=[TAINT]))

    def test_one_more_of_a_kind_is_one_too_many(self):
        second = TAINT | {"effect": "NoExecute"}
        new = machine(nodeTaints=[TAINT, second])
        assert fields(new, old=machine(nodeTaints=[TAINT])) == ["spec.nodeTaints[1].key"]

    def test_disabling_passes_where_days_and_cron_stood_together_of_old(self):
        both = {"cron": "0 9 * * *", "daysOfWeek": ["mon"]}
        assert not fields(scheduled(**both, enabled=False), old=scheduled(**both))

    def test_touching_one_of_two_fields_that_exclude_each_other_is_judged(self):
        old = scheduled(cron="0 9 * * *", daysOfWeek=["mon"])
        assert fields(scheduled(cron="0 9 * * *", daysOfWeek=["tue"]), old=old) == ["spec.schedule.cron"]

    def test_unknown_fields_stored_before_stay(self):
        assert not fields(machine(future=1, priority=1), old=machine(future=1))
        assert fields(machine(future=2), old=machine(future=1)) == ["spec.future"]

    @pytest.mark.parametrize("large", [{"killIfCommands": ["a"] * 101}, {"nodeTaints": [TAINT] * 65}])
    def test_what_was_too_large_before_hides_nothing_that_comes_now(self, large):
        old, new = machine(**large), machine(**large, schedule={"hoursOfDay": ["9"], "timezone": "Nope/Nope"})
        new["spec"]["bootstrapSpec"] |= {"kind": "JoinTokenRequest", "namespace": "kube-system"}
        assert fields(new, old=old) == [
            "spec.schedule.timezone",
            "spec.bootstrapSpec.kind",
            "spec.bootstrapSpec.namespace",
        ]

    def test_what_was_nested_too_deeply_before_hides_nothing_and_may_stay(self):
        old, new = machine(), machine()
        old["spec"]["bootstrapSpec"]["spec"] = nested(900)
        new["spec"]["bootstrapSpec"]["spec"] = nested(900)
        assert not fields(new, old=old)
        new["spec"]["bootstrapSpec"]["namespace"] = "kube-system"
        assert fields(new, old=old) == ["spec.bootstrapSpec.namespace"]

    def test_a_list_that_was_too_large_may_stay_but_not_become_another(self):
        old = machine(killIfCommands=["a"] * 101)
        assert not fields(machine(killIfCommands=["a"] * 101, priority=1), old=old)
        assert fields(machine(killIfCommands=["a"] * 100 + ["b"]), old=old) == ["spec.killIfCommands"]

    def test_a_change_beyond_what_a_message_shows_is_a_change(self):
        old = machine(killIfCommands=["a" * 300])
        assert fields(machine(killIfCommands=["a" * 150 + "b" * 150]), old=old) == ["spec.killIfCommands[0]"]

    def test_a_schedule_that_cannot_open_may_still_be_paused(self):
        assert not fields(scheduled(timezone="UTC", enabled=False), old=scheduled(timezone="UTC"))

    def test_the_value_under_a_key_that_was_refused_later_can_change_as_in_the_crd(self):
        labels = {"kubernetes.io/x": "old"}
        old, new = machine(machineTemplate={"labels": labels}), machine(machineTemplate={"labels": labels})
        new["spec"]["machineTemplate"] = {"labels": {"kubernetes.io/x": "new"}}
        assert not fields(new, old=old)

    def test_an_object_with_an_old_fault_gets_no_cron_that_never_fires(self):
        old, new = machine(nodeTaints=[TAINT]), machine(nodeTaints=[TAINT], schedule=SKIPPED)
        assert fields(new, old=old) == ["spec.schedule.cron"]

    def test_the_deletion_of_an_object_is_never_blocked(self):
        old, new = machine(priority=-1), machine(priority=-1)
        new["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "labels": {"a b": 1}, "finalizers": []}
        assert check(new, old=old).allowed

    def test_an_edit_of_the_spec_of_an_object_being_deleted_is_judged_like_any_other(self):
        old, new = machine(priority=-1, status={"machineRef": REF}), machine(clusterName="moved", priority=-1)
        for each in (old, new):
            each["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        new["spec"]["bootstrapSpec"]["kind"] = "K0sControllerConfig"
        assert fields(new, old=old) == ["spec.bootstrapSpec.kind", "spec.clusterName"]
        assert not fields(machine(priority=-1, killSwitch=True), old=old)

    def test_a_deletion_timestamp_lets_nothing_in_at_creation(self):
        new = machine(priority=-1)
        new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        assert not check(new).allowed

    def test_the_cluster_can_change_as_long_as_there_is_no_machine(self):
        assert not fields(machine(clusterName="other"), old=machine())

    def test_the_submitted_status_does_not_unlock_the_cluster(self):
        old, new = machine(status={"machineRef": REF}), machine(clusterName="other", status={"phase": "Inactive"})
        (violation,) = check(new, old=old).violations
        assert violation.field == "spec.clusterName"
        assert "production-cluster" in violation.message

    def test_the_cluster_of_an_object_with_a_machine_cannot_be_broken_either(self):
        old = machine(status={"machineRef": REF})
        assert "spec.clusterName" in fields(machine(clusterName=None), old=old)


class TestStored:
    def test_unknown_fields_are_ignored(self):
        verdict = check(machine(future={"a": 1}) | {"more": 1}, unknown="ignore")
        assert verdict.model is not None
        assert verdict.allowed

    @pytest.mark.parametrize(
        ("schedule", "field"),
        [
            ({"seasons": ["winter"]}, "spec.schedule.seasons"),
            ({"exceptions": [{"dates": ["2026-12-24"], "state": "Closed", "from": "12:00"}]}, "exceptions[0].from"),
            ({"exceptions": [{"calendarRef": {"name": "a", "tags": []}, "state": "Open"}]}, "calendarRef.tags"),
        ],
    )
    def test_a_schedule_with_an_unknown_field_is_not_read_and_the_message_says_what_to_do(self, schedule, field):
        verdict = check(scheduled(hoursOfDay=["9"], **schedule), unknown="ignore")
        assert verdict.model is None
        (violation,) = verdict.violations
        assert violation.field.endswith(field)
        assert violation.message == UNREAD

    def test_an_unknown_field_of_a_schedule_that_is_null_is_absent(self):
        assert check(scheduled(hoursOfDay=["9"], seasons=None), unknown="ignore").allowed

    def test_an_invalid_spec_gives_no_object_and_all_the_reasons(self):
        verdict = check(machine(priority=-1, clusterName=""), unknown="ignore")
        assert verdict.model is None
        assert {violation.field for violation in verdict.violations} == {"spec.priority", "spec.clusterName"}
