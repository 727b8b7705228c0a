import json

import pytest

from agent.netlink import EventsUnavailable
from agent.proc import ProcTable
from agent.sources import choose, fall_back
from tests.integration.agents import events_available

GRANTED = events_available()


def said(capsys) -> dict[str, str]:
    return json.loads(capsys.readouterr().err.splitlines()[-1])


def test_events_are_used_where_the_kernel_grants_them_else_polling(capsys):
    source = choose("auto", ProcTable(), 0.25)
    assert source.name == ("events" if GRANTED else "polling")
    assert said(capsys)["source"] == source.name


def test_polling_can_be_asked_for(capsys):
    assert choose("polling", ProcTable(), 0.25).name == "polling"
    assert "--source" in said(capsys)["why"]


def test_events_can_be_insisted_on():
    if GRANTED:
        assert choose("events", ProcTable(), 0.25).name == "events"
    else:
        with pytest.raises(EventsUnavailable):
            choose("events", ProcTable(), 0.25)


def test_falling_back_says_why(capsys):
    assert fall_back(ProcTable(), 0.5, "no such luck").name == "polling"
    line = said(capsys)
    assert (line["level"], line["why"]) == ("warning", "no such luck")
