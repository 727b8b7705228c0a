from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from agent.api import Api, APIServer
from agent.claim import Claimant, HostCheck, annotated, host_problem, node_seen
from agent.examine import Match
from agent.trigger import NodeSeen
from crds.names import ANNOTATION_RECLAIM_REQUESTED, RECLAIM_ANNOTATIONS

A, B = "a" * 32, "b" * 32


@pytest.mark.parametrize(
    ("ours", "theirs", "check", "writes"),
    [
        (A, A, "strict", True),
        (A, A.upper(), "strict", True),
        (A, B, "strict", False),
        (A, "", "strict", False),
        ("", A, "strict", False),
        ("", "", "strict", False),
        (A, B, "lenient", False),
        (A, "", "lenient", True),
        ("", A, "lenient", True),
        (A, B, "off", True),
        ("", "", "off", True),
    ],
)
def test_only_this_hosts_own_node_is_written_to(ours: str, theirs: str, check: HostCheck, writes: bool):
    assert (host_problem(ours, theirs, check) is None) is writes


def claimant(machine_id: Path) -> Claimant:
    return Claimant(Api(APIServer("127.0.0.1", 1, machine_id, machine_id)), "ws-1", machine_id, "strict")


def test_the_hosts_machine_id_is_read_from_its_file(tmp_path: Path):
    file = tmp_path / "machine-id"
    node = {"status": {"nodeInfo": {"machineID": A}}}
    assert "cannot be read" in str(claimant(file).doubt(node))
    file.write_text(f"{A}\n")
    assert claimant(file).doubt(node) is None
    assert "Node ws-1" in str(claimant(file).doubt({}))


def test_the_request_holds_three_annotations_and_the_nodes_uid():
    seen_at = datetime(2026, 11, 16, 22, 0, 1, 999, tzinfo=timezone(timedelta(hours=1)))
    body = annotated("ws-1", "u1", Match(7, 1, "idea", "why", seen_at))
    assert body["metadata"]["uid"] == "u1"
    assert set(body["metadata"]) == {"name", "uid", "annotations"}
    assert (
        dict(zip(RECLAIM_ANNOTATIONS, ("true", "why", "2026-11-16T21:00:01Z"), strict=True))
        == (body["metadata"]["annotations"])
    )


@pytest.mark.parametrize(
    ("annotations", "requested"),
    [
        (None, False),
        ({}, False),
        ({ANNOTATION_RECLAIM_REQUESTED: "true"}, True),
        ({ANNOTATION_RECLAIM_REQUESTED: "True"}, False),
        ({ANNOTATION_RECLAIM_REQUESTED: "false"}, False),
    ],
)
def test_a_request_stands_only_if_it_says_exactly_true(annotations: dict[str, str] | None, requested: bool):
    metadata = {"uid": "u", "resourceVersion": "5", "annotations": annotations}
    assert node_seen(metadata) == NodeSeen("u", "5", requested)


def test_times_are_written_in_utc():
    body = annotated("ws-1", "u1", Match(7, 1, "idea", "why", datetime(2026, 1, 1, tzinfo=UTC)))
    assert "2026-01-01T00:00:00Z" in body["metadata"]["annotations"].values()
