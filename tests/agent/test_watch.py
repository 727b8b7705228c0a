from pathlib import Path
from typing import Any

import pytest

from agent.api import Refused
from agent.watch import Follower, config_target, node_target
from tests.agent.https import serving


def listing(*items: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": "7"}, "items": list(items)}


def test_the_object_is_reported_as_it_is_and_as_it_changes(tmp_path: Path):
    seen: list[Any] = []
    with serving(tmp_path) as (script, api):
        script.says(listing({"v": 1}))
        script.says(
            {"type": "MODIFIED", "object": {"v": 2}},
            {"type": "BOOKMARK", "object": {"v": 9}},
            {"type": "DELETED", "object": {"v": 2}},
            {"type": "ADDED", "object": {"v": 3}},
        )
        Follower(api, config_target("ws-1"), seen.append).report_current_and_changes()
    assert seen == [{"v": 1}, {"v": 2}, None, {"v": 3}]
    first, second = (request[1] for request in script.requests)
    assert first.startswith(
        "/api/v1/namespaces/5spot-system/configmaps?fieldSelector=metadata.name%3Dreclaim-agent-ws-1"
    )
    assert "resourceVersion=7" in second
    assert "allowWatchBookmarks=true" in second


def test_a_missing_object_is_reported_as_missing(tmp_path: Path):
    seen: list[Any] = []
    with serving(tmp_path) as (script, api):
        script.says(listing())
        script.says({"type": "BOOKMARK", "object": {}})
        Follower(api, config_target("ws-1"), seen.append).report_current_and_changes()
    assert seen == [None]


def test_an_expired_watch_asks_for_a_new_list(tmp_path: Path):
    seen: list[Any] = []
    with serving(tmp_path) as (script, api):
        script.says(listing({"v": 1}))
        script.says({"type": "ERROR", "object": {"code": 410, "message": "too old"}})
        with pytest.raises(Refused) as refused:
            Follower(api, config_target("ws-1"), seen.append).report_current_and_changes()
    assert refused.value.status == 410


def test_changes_of_the_node_come_without_its_status(tmp_path: Path):
    with serving(tmp_path) as (script, api):
        script.says(listing())
        script.says({"type": "BOOKMARK", "object": {}})
        Follower(api, node_target("ws-1"), lambda _: None).report_current_and_changes()
    assert "PartialObjectMetadata" not in script.requests[0][2]["Accept"]
    assert "PartialObjectMetadata" in script.requests[1][2]["Accept"]


def test_the_same_failure_is_logged_once_and_its_end_too(tmp_path: Path, capsys):
    with serving(tmp_path) as (script, api):
        script.says({"message": "broken"}, status=500)
        follower = Follower(api, node_target("ws-1"), lambda _: None)
        assert not follower._once()
        assert not follower._once()
        script.answers.clear()
        script.says(listing())
        script.says({"type": "BOOKMARK", "object": {}})
        assert follower._once()
    events = [line.split('"event": "')[1].split('"')[0] for line in capsys.readouterr().err.splitlines()]
    assert events == ["watch-interrupted", "watch-resumed"]
