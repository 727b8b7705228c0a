"""Calls that hang take a bounded number of workers, and who finds no slot is woken when there is one."""

import asyncio
from contextlib import ExitStack, suppress

import pytest

from service.runtime.key import Key
from service.runtime.slots import SLOW_SECONDS, Lane, NoSlotError, Slots

HOSTS, CONFIGS = Lane("hosts.example", "create"), Lane("configs.example", "create")
KEYS = [Key("team", f"desk-{number}") for number in range(40)]


class Crowd:
    """Slots of 16 workers, a clock that the test moves, and who was woken."""

    def __init__(self) -> None:
        self.now = 0.0
        self.woken: list[Key] = []
        self.slots = Slots(16, self.woken.append, lambda: self.now)
        self.under_way: list[ExitStack] = []

    def call(self, key: Key, lane: Lane = HOSTS) -> ExitStack:
        stack = ExitStack()
        stack.enter_context(self.slots.held(lane, key))
        self.under_way.append(stack)
        return stack

    def fill(self, lane: Lane = HOSTS) -> list[ExitStack]:
        """All calls of a lane that may be under way."""
        before = len(self.under_way)
        with suppress(NoSlotError):
            for key in KEYS:
                self.call(key, lane)
        made = self.under_way[before:]
        self.slots.finished(KEYS[len(made)])
        return made

    def park(self, key: Key, lane: Lane = HOSTS) -> NoSlotError:
        with pytest.raises(NoSlotError) as full:
            self.call(key, lane)
        self.slots.finished(key, waits=True)
        return full.value


@pytest.fixture
def crowd():
    return Crowd()


def test_one_kind_takes_half_of_the_workers_and_all_kinds_together_leave_a_quarter(crowd):
    assert len(crowd.fill(HOSTS)) == 8
    assert len(crowd.fill(CONFIGS)) == 4


def test_deletions_find_a_slot_when_creations_have_taken_all_that_they_may(crowd):
    crowd.fill(HOSTS)
    crowd.fill(CONFIGS)
    assert len(crowd.fill(Lane("hosts.example", "delete"))) == 2


def test_a_free_slot_goes_to_the_key_that_waits_longest(crowd):
    calls = crowd.fill()
    for key in KEYS[20:23]:
        assert not crowd.park(key).slow
    calls.pop().close()
    assert crowd.woken == [KEYS[20]]
    crowd.park(KEYS[30])  # the slot is kept for who was woken
    crowd.call(KEYS[20])
    crowd.slots.finished(KEYS[20])
    calls.pop().close()
    assert crowd.woken == [KEYS[20], KEYS[21]]


def test_a_woken_key_that_no_longer_needs_its_slot_leaves_it_to_the_next(crowd):
    calls = crowd.fill()
    crowd.park(KEYS[20])
    crowd.park(KEYS[21])
    calls.pop().close()
    crowd.slots.finished(KEYS[20])  # its window closed meanwhile, or it is gone
    assert crowd.woken == [KEYS[20], KEYS[21]]


def test_a_key_that_no_longer_waits_is_not_woken(crowd):
    calls = crowd.fill()
    crowd.park(KEYS[20])
    crowd.slots.finished(KEYS[20])
    calls.pop().close()
    assert crowd.woken == []


def test_a_kind_that_is_slow_takes_an_eighth_until_a_call_is_answered_quickly(crowd):
    calls = crowd.fill()
    crowd.now += SLOW_SECONDS + 1
    for key in KEYS[20:]:
        assert crowd.park(key).slow
    for call in calls:
        call.close()
    assert crowd.woken == KEYS[20:22]
    with crowd.slots.held(HOSTS, KEYS[20]):
        pass
    assert crowd.woken == KEYS[20:29]


def test_a_slot_that_is_free_in_all_goes_to_another_kind(crowd):
    calls = crowd.fill(HOSTS)
    crowd.fill(CONFIGS)
    crowd.park(KEYS[30], CONFIGS)
    calls.pop().close()
    assert crowd.woken == [KEYS[30]]


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 256])
def test_there_is_a_slot_however_few_workers_there_are(workers):
    slots = Slots(workers, lambda _key: None)
    with slots.held(HOSTS, KEYS[0]):
        assert len(slots._lanes) == 1
    assert slots._lanes == {}


async def test_while_all_calls_are_quick_a_worker_waits_for_a_slot_and_no_key_is_put_aside(crowd):
    calls = crowd.fill()
    waiting = asyncio.create_task(crowd.slots.until_free(HOSTS))
    await asyncio.sleep(0)
    assert not waiting.done()
    calls.pop().close()
    await waiting
    crowd.call(KEYS[30])
    assert crowd.woken == []


async def test_once_a_call_is_slow_no_worker_waits(crowd):
    crowd.fill()
    crowd.now += SLOW_SECONDS + 0.1
    await crowd.slots.until_free(HOSTS)
    assert crowd.park(KEYS[30]).slow


async def test_a_slot_that_is_free_is_not_waited_for(crowd):
    await crowd.slots.until_free(HOSTS)
    crowd.call(KEYS[0])
    await crowd.slots.until_free(HOSTS)
