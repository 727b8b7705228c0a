from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from crds.scheduledmachine import (
    MachineTemplate,
    Metadata,
    NodeTaint,
    ProviderSpec,
    ScheduledMachineSpec,
)
from crds.schedulespec import ScheduleSpec
from crds.status import Effect
from crds.values import Cron, DaySet, HourSet, Zone
from tests.corpus import base


def parsed(**spec):
    return ScheduledMachineSpec.parse(base()["spec"] | spec, unknown="forbid")


def test_fields_are_typed_values():
    spec = parsed(
        schedule={"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "Europe/Berlin"},
        gracefulShutdownTimeout="1h30m",
        killIfCommands=["steam"],
        nodeTaints=[{"key": "a", "effect": "NoExecute"}],
        machineTemplate={"labels": {"team": "x"}},
    )
    assert spec.schedule.days_of_week == DaySet.parse(["mon-fri"])
    assert spec.schedule.hours_of_day == HourSet.parse(["9-17"])
    assert spec.schedule.timezone == Zone.parse("Europe/Berlin")
    assert spec.graceful_shutdown_timeout == timedelta(minutes=90)
    assert spec.node_drain_timeout == timedelta(minutes=5)
    assert spec.kill_if_commands == ("steam",)
    assert spec.node_taints == (NodeTaint(key="a", effect=Effect.NO_EXECUTE),)
    assert spec.machine_template == MachineTemplate(labels={"team": "x"})


def test_cron_is_read_too():
    spec = parsed(schedule={"cron": "0 9 * * mon", "duration": "8h"})
    assert spec.schedule.cron == Cron.parse("0 9 * * mon")
    assert spec.schedule.duration == timedelta(hours=8)


def test_models_are_frozen():
    with pytest.raises(ValidationError):
        parsed().priority = 3


def test_only_the_outer_names_are_known_outside():
    with pytest.raises(ValidationError, match="cluster_name"):
        parsed(cluster_name="other")


def test_a_model_can_be_built_by_its_own_names():
    spec = ScheduleSpec(days_of_week=DaySet.parse(["mon"]), timezone=Zone.parse("UTC"))
    assert spec.compiled.covers(datetime(2026, 3, 9, 12, tzinfo=UTC))
    assert not spec.compiled.covers(datetime(2026, 3, 10, 12, tzinfo=UTC))


def test_a_disabled_schedule_still_means_what_it_says():
    spec = parsed(schedule={"cron": "0 9 * * *", "enabled": False}).schedule
    assert spec.compiled.covers(datetime(2026, 3, 9, 9, 0, 59, tzinfo=UTC))
    assert not spec.compiled.covers(datetime(2026, 3, 9, 9, 1, tzinfo=UTC))


def test_equal_schedules_are_compiled_once():
    first, second = parsed().schedule, parsed().schedule
    assert first.compiled is second.compiled


def test_a_provider_spec_knows_its_group_and_leaves_the_payload_alone():
    payload = {"a": [1, None, {"b": "c"}]}
    spec = ProviderSpec.parse({"apiVersion": "k0smotron.io/v1beta1", "kind": "K0sWorkerConfig", "spec": payload})
    assert spec.group == "k0smotron.io"
    assert spec.spec == payload


def test_metadata_is_read_as_far_as_it_makes_sense():
    metadata = Metadata.read({"name": "w", "labels": {"a": 1}, "deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert metadata.name == "w"
    assert metadata.labels == {}
    assert metadata.deletion_timestamp == datetime(2026, 1, 1, tzinfo=UTC)
    assert Metadata.read(None).name == ""
