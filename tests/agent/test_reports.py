from pathlib import Path
from typing import Any

import pytest

from agent.api import Api, APIServer
from agent.claim import Claimant
from agent.mailbox import Mailbox
from agent.patterns import NO_PATTERNS, Patterns
from agent.reports import Reports
from agent.trigger import ConfigSeen, NodeGone, NodeSeen


@pytest.fixture
def mailbox():
    made = Mailbox()
    yield made
    made.close()


@pytest.fixture
def reports(mailbox: Mailbox, tmp_path: Path) -> Reports:
    file = tmp_path / "machine-id"
    file.write_text("a" * 32)
    return Reports(mailbox, Claimant(Api(APIServer("127.0.0.1", 1, file, file)), "ws-1", file, "strict"))


def node(machine_id: str) -> dict[str, Any]:
    return {"metadata": {"uid": "u", "resourceVersion": "5"}, "status": {"nodeInfo": {"machineID": machine_id}}}


def test_a_config_map_becomes_its_patterns_and_none_becomes_inertness(reports: Reports, mailbox: Mailbox):
    reports.config({"data": {"killIfCommands": '["idea"]'}})
    reports.config(None)
    assert mailbox.take() == [ConfigSeen(Patterns(("idea",))), ConfigSeen(NO_PATTERNS)]


def test_a_node_becomes_what_is_known_of_it(reports: Reports, mailbox: Mailbox):
    reports.node({"metadata": {"uid": "u", "resourceVersion": "5"}})
    reports.node(None)
    assert mailbox.take() == [NodeSeen("u", "5", requested=False), NodeGone()]


def test_a_wrong_host_is_warned_of_once_before_anything_matches(reports: Reports, capsys):
    reports.node(node("b" * 32))
    reports.node(node("b" * 32))
    assert capsys.readouterr().err.count("wrong-host") == 1
    reports.node(node("a" * 32))
    assert capsys.readouterr().err == ""
