import pytest

from crds.rules import check
from tests.crds.machines import machine, scheduled


def warnings(manifest):
    verdict = check(manifest)
    assert verdict.allowed
    return verdict.warnings


def test_a_plain_schedule_deserves_no_warning():
    assert not warnings(machine())


def test_hours_past_midnight_on_some_days_are_named():
    (warning,) = warnings(scheduled(daysOfWeek=["fri"], hoursOfDay=["22-6"]))
    assert "22-6" in warning
    assert "fri" in warning


@pytest.mark.parametrize(
    "schedule",
    [
        {"hoursOfDay": ["22-6"]},
        {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["22-6"]},
        {"daysOfWeek": ["fri"], "hoursOfDay": ["22-23"]},
        {"daysOfWeek": ["fri-mon"], "hoursOfDay": ["9-17"]},
    ],
)
def test_hours_past_midnight_on_all_days_are_what_they_seem(schedule):
    assert not warnings(scheduled(**schedule))


def test_a_window_shorter_than_the_shutdown_is_named():
    (warning,) = warnings(scheduled(cron="0 9 * * *"))
    assert "window of 1m, shorter than the 5m" in warning


def test_the_shorter_timeout_counts():
    manifest = machine(schedule={"cron": "0 9 * * *", "duration": "10m"}, gracefulShutdownTimeout="15m")
    assert not warnings(manifest)
    assert warnings(manifest | {"spec": manifest["spec"] | {"nodeDrainTimeout": "11m"}})


def test_a_window_to_the_minute_shorter_than_the_shutdown_is_named():
    (warning,) = warnings(scheduled(windows=[{"from": "09:00", "to": "09:04"}]))
    assert "window of 4m, shorter than the 5m" in warning


def test_minutes_in_a_row_are_one_long_window():
    assert not warnings(scheduled(cron="* 9-17 * * mon-fri"))


def test_overlapping_windows_are_named():
    (warning,) = warnings(scheduled(cron="0 * * * *", duration="2h"))
    assert "overlap" in warning


def test_windows_that_only_touch_do_not_overlap():
    assert not warnings(scheduled(cron="0 * * * *", duration="1h"))


def test_kill_if_commands_ask_for_gitops_to_ignore_the_field_that_a_reclaim_sets():
    (warning,) = warnings(machine(killIfCommands=["steam"]))
    assert "spec.schedule.enabled" in warning


KUBEADM = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig", "spec": {}}


@pytest.mark.parametrize("template", [None, {}, {"labels": {"team": "batch"}}, {"version": None}])
def test_a_bootstrap_kind_that_needs_a_version_and_has_none_is_named(template):
    (warning,) = warnings(machine(bootstrapSpec=KUBEADM, machineTemplate=template))
    assert warning.startswith("spec.machineTemplate.version: is not set")


def test_with_a_version_or_with_k0s_own_there_is_nothing_to_warn_of():
    assert not warnings(machine(bootstrapSpec=KUBEADM, machineTemplate={"version": "v1.34.2"}))
    assert not warnings(machine(bootstrapSpec={**KUBEADM, "kind": "K0sWorkerConfig"}))


def test_a_rejected_manifest_has_violations_and_no_warnings():
    assert not check(machine(killIfCommands=["steam"], priority=-1)).warnings


def test_a_lead_that_leaves_nothing_of_a_window_is_named():
    (warning,) = warnings(scheduled(cron="0 9 * * *", duration="20m", stopEarly="20m"))
    assert "leaves nothing of a window of 20m" in warning
    assert not warnings(scheduled(cron="0 9 * * *", duration="20m", stopEarly="19m"))
    assert not warnings(scheduled(cron="0 9 * * *", duration="20m", stopEarly="Auto"))
