"""What the domain's clock shows, now and at an instant of real time."""

from datetime import UTC, datetime, timedelta

import pytest

from service.clock import ManualClock, SimulatedClock, SystemClock

AT = datetime(2026, 3, 6, 9, tzinfo=UTC)
TOLERANCE = timedelta(seconds=2)


def test_the_system_clock_shows_real_time():
    stamp = datetime.now(UTC) - timedelta(hours=1)
    assert SystemClock().shown_at(stamp) == stamp
    assert abs(SystemClock().now() - datetime.now(UTC)) < TOLERANCE


@pytest.mark.parametrize("speed", [1.0, 60.0])
def test_a_simulated_clock_translates_time_stamps_of_an_api_server_at_its_own_speed(speed):
    clock = SimulatedClock.starting(AT, speed)
    ago = timedelta(minutes=10)
    assert abs(clock.shown_at(datetime.now(UTC) - ago) - (AT - ago * speed)) < TOLERANCE * speed


def test_another_process_can_follow_a_simulated_clock():
    clock = SimulatedClock.starting(AT, 60)
    followed = SimulatedClock.from_json(clock.to_json())
    assert abs(followed.now() - clock.now()) < TOLERANCE * 60
    assert followed.speed == 60


def test_a_simulated_clock_needs_a_speed():
    with pytest.raises(ValueError, match="more than 0"):
        SimulatedClock.starting(AT, 0)


def test_a_manual_clock_stands_still_until_it_is_moved():
    clock = ManualClock(AT)
    clock.advance(timedelta(minutes=5))
    assert clock.now() == clock.shown_at(datetime.now(UTC)) == AT + timedelta(minutes=5)
    assert (clock.real_seconds(timedelta(0)), clock.real_seconds(timedelta(1))) == (0.0, float("inf"))
