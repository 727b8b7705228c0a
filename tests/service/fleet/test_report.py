"""What machines did, from their histories."""

from datetime import UTC, datetime, timedelta
from typing import Any

from crds.base import rfc3339
from crds.history import History, ServiceRecord
from service.fleet.report import Report

MIDNIGHT = datetime(2026, 3, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAYS = [MIDNIGHT + each * 24 * HOUR for each in range(3)]


def served(opened: datetime, **changes: Any) -> tuple[ServiceRecord, ...]:
    """Two minutes to join, eight hours in service, half an hour to leave."""
    found = {
        "opened": rfc3339(opened),
        "requested": rfc3339(opened),
        "ready": rfc3339(opened + timedelta(minutes=2)),
        "shutdown": rfc3339(opened + 8 * HOUR),
        "gone": rfc3339(opened + 8.5 * HOUR),
        "reason": "WindowClosed",
        **changes,
    }
    return History.of([found]).records


def report(*histories: tuple[ServiceRecord, ...], now: datetime = DAYS[2]) -> dict[str, Any]:
    found = Report(DAYS, now)
    for each in histories:
        found.add(each)
    return found.to_json()


def test_a_service_across_midnight_counts_on_both_days() -> None:
    found = report(served(DAYS[1] - 4 * HOUR))
    assert found["servedHours"] == [3.97, 4.0]
    assert found["freeHours"] == [0.0, 19.5]


def test_time_before_the_first_known_service_is_not_called_free() -> None:
    assert report(served(DAYS[1]))["freeHours"] == [0.0, 15.5]
    assert report((), ())["freeHours"] == [0.0, 0.0]


def test_a_service_under_way_counts_until_now() -> None:
    under_way = served(DAYS[0], shutdown=None, gone=None, reason=None)
    assert report(under_way, now=DAYS[0] + 3 * HOUR)["servedHours"] == [2.97, 0.0]


def test_who_is_ready_at_the_opening_is_punctual() -> None:
    late, early = served(DAYS[0]), served(DAYS[0], requested=rfc3339(DAYS[0] - 5 * HOUR), ready=rfc3339(DAYS[0]))
    found = report(late, early)
    assert found["punctual"] == 0.5
    assert found["late"]["values"] == [0.0, 120.0]
    assert found["reasons"] == {"WindowClosed": 2}


def test_a_machine_that_could_not_be_there_at_the_opening_is_not_late() -> None:
    noon = rfc3339(DAYS[0] + 3 * HOUR)
    (first,) = served(DAYS[0], gone=noon, reason="Reclaimed")
    (second,) = served(DAYS[0], requested=noon, ready=rfc3339(DAYS[0] + 4 * HOUR))
    assert report((first, second))["late"]["values"] == [120.0]
    found = Report(DAYS, DAYS[2])
    found.add(served(DAYS[0]), created=DAYS[0] + HOUR)
    assert found.to_json()["punctual"] is None


def test_without_services_there_is_nothing_to_compare() -> None:
    found = report(())
    assert (found["punctual"], found["toReady"], found["services"]) == (None, None, 0)
