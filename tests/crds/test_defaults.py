import copy

from hypothesis import given
from hypothesis import strategies as st

from crds.defaults import absent
from crds.rules import check
from tests.crds.defaulting import defaulted
from tests.crds.machines import machine, scheduled


def test_absent_fields_are_written_out():
    spec = defaulted(machine(schedule={"daysOfWeek": ["mon"]}))["spec"]
    assert spec["schedule"] == {"daysOfWeek": ["mon"], "hoursOfDay": [], "timezone": "UTC", "enabled": True}
    assert spec["priority"] == 50
    assert spec["gracefulShutdownTimeout"] == spec["nodeDrainTimeout"] == "5m"
    assert spec["provisioningTimeout"] == "15m"
    assert spec["killSwitch"] is False
    assert spec["nodeTaints"] == []
    assert not {"killIfCommands", "machineTemplate"} & spec.keys()


def test_duration_is_added_only_with_cron():
    assert defaulted(scheduled(cron="0 9 * * *"))["spec"]["schedule"] == {
        "cron": "0 9 * * *",
        "duration": "1m",
        "timezone": "UTC",
        "enabled": True,
    }


def test_days_and_hours_are_not_added_beside_windows():
    windows = [{"from": "09:00", "to": "17:30"}]
    assert defaulted(scheduled(windows=windows))["spec"]["schedule"] == {
        "windows": windows,
        "timezone": "UTC",
        "enabled": True,
    }
    assert defaulted(scheduled(windows=[], daysOfWeek=["mon"]))["spec"]["schedule"]["hoursOfDay"] == []


def test_what_a_user_wrote_is_never_rewritten():
    written = machine(priority=0, killSwitch=True, gracefulShutdownTimeout="0h5m", nodeTaints=[{"odd": 1}])
    written["spec"]["schedule"] |= {"timezone": "Nowhere", "enabled": False, "hoursOfDay": ["09 - 17"]}
    before = copy.deepcopy(written)
    after = defaulted(written)
    assert written == before
    assert after["spec"].items() >= {k: v for k, v in before["spec"].items() if k != "schedule"}.items()
    assert after["spec"]["schedule"].items() >= before["spec"]["schedule"].items()


def test_an_explicit_null_counts_as_absent():
    assert defaulted(machine(priority=None))["spec"]["priority"] == 50


def test_defaulting_twice_adds_nothing_more():
    for manifest in (machine(), scheduled(cron="0 9 * * *"), scheduled()):
        assert not absent(defaulted(manifest))


def test_defaults_change_nothing_in_the_meaning():
    for manifest in (machine(), scheduled(cron="0 9 * * *"), scheduled(hoursOfDay=["9"])):
        plain, full = check(manifest).model, check(defaulted(manifest)).model
        assert plain is not None
        assert full is not None
        assert plain.spec.schedule.compiled == full.spec.schedule.compiled
        assert plain.spec.graceful_shutdown_timeout == full.spec.graceful_shutdown_timeout


@given(st.recursive(st.none() | st.text(), lambda inner: st.dictionaries(st.sampled_from(["spec", "schedule"]), inner)))
def test_anything_at_all_can_be_defaulted(raw):
    absent(raw)
