import os
import threading
import time

import pytest

from agent.mailbox import Mailbox
from agent.trigger import NodeGone


@pytest.fixture
def mailbox():
    made = Mailbox()
    yield made
    made.close()


def test_letters_are_taken_once_and_in_order(mailbox: Mailbox):
    first, second = NodeGone(), ValueError("dead thread")
    mailbox.put(first)
    mailbox.put(second)
    assert mailbox.take() == [first, second]
    assert mailbox.take() == []


def test_a_letter_wakes_a_sleeper(mailbox: Mailbox):
    threading.Thread(target=mailbox.put, args=(NodeGone(),)).start()
    mailbox.sleep(None)
    assert mailbox.take() == [NodeGone()]


def test_another_descriptor_wakes_a_sleeper(mailbox: Mailbox):
    readable, writable = os.pipe()
    os.write(writable, b"x")
    mailbox.sleep(None, readable)
    assert mailbox.take() == []
    for fd in (readable, writable):
        os.close(fd)


def test_sleep_ends_by_itself_and_not_early(mailbox: Mailbox):
    began = time.monotonic()
    mailbox.sleep(0.02)
    assert 0.02 <= time.monotonic() - began < 5
