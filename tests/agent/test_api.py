import json
import socket
from pathlib import Path

import pytest

from agent.api import Api, APIServer, Refused, Unreachable, object_path, selecting
from agent.watch import WATCH_SECONDS
from local import pki
from tests.agent.https import serving


def test_a_get_carries_the_token_as_it_is_now(tmp_path: Path):
    with serving(tmp_path) as (script, api):
        script.says({"kind": "Node"})
        with api.session() as session:
            assert session.get("/api/v1/nodes/a") == {"kind": "Node"}
            (tmp_path / "token").write_text("second")
            session.get("/api/v1/nodes/a")
    assert [request[2]["Authorization"] for request in script.requests] == ["Bearer first", "Bearer second"]


def test_apply_is_server_side_and_in_the_agents_name(tmp_path: Path):
    with serving(tmp_path) as (script, api):
        script.says({})
        with api.session() as session:
            session.apply("/api/v1/nodes/a", {"kind": "Node"})
    method, path, headers, body = script.requests[0]
    assert (method, path) == ("PATCH", "/api/v1/nodes/a?fieldManager=5spot-reclaim-agent&force=true")
    assert headers["Content-Type"] == "application/apply-patch+yaml"
    assert json.loads(body) == {"kind": "Node"}


@pytest.mark.parametrize("body", [{"message": "no such thing"}, "no such thing"])
def test_a_refusal_says_what_the_server_said(tmp_path: Path, body: object):
    with serving(tmp_path) as (script, api):
        script.says(body, status=404)
        with pytest.raises(Refused, match=r"HTTP 404: .*no such thing") as refused, api.session() as session:
            session.get("/x")
    assert refused.value.status == 404


def test_a_stream_gives_its_events_one_by_one(tmp_path: Path):
    with serving(tmp_path) as (script, api):
        script.says({"type": "ADDED"}, {"type": "BOOKMARK"})
        with api.session() as session:
            assert [event["type"] for event in session.stream("/w")] == ["ADDED", "BOOKMARK"]


def test_a_stream_notices_a_dead_connection_by_tcp_probes_not_by_silence(tmp_path: Path):
    with serving(tmp_path) as (script, api):
        script.says({"type": "ADDED"})
        with api.session() as session:
            next(session.stream("/w"))
            link = session._connection.sock
            assert link is not None
            assert link.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert link.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
            assert (link.gettimeout() or 0) > WATCH_SECONDS + 60


def test_an_answer_that_is_not_json_is_no_answer(tmp_path: Path):
    with serving(tmp_path) as (script, api):
        script.answers.append((200, b"<html>"))
        with pytest.raises(Unreachable), api.session() as session:
            session.get("/x")


def test_a_server_of_another_ca_is_not_believed(tmp_path: Path):
    with serving(tmp_path) as (script, api):
        script.says({})
        (tmp_path / "ca.crt").write_bytes(pki.Authority.create("another CA").pem)
        with pytest.raises(Unreachable, match="certificate verify failed"), api.session() as session:
            session.get("/x")
    assert script.requests == []


@pytest.mark.parametrize("missing", ["ca.crt", "token"])
def test_missing_credentials_are_an_outage_not_a_crash(tmp_path: Path, missing: str):
    with serving(tmp_path) as (script, api):
        script.says({})
        (tmp_path / missing).unlink()
        with pytest.raises(Unreachable, match="No such file"), api.session() as session:
            session.get("/x")


def test_a_port_without_a_server_is_an_outage(tmp_path: Path):
    (tmp_path / "ca.crt").write_bytes(pki.Authority.create("a CA").pem)
    (tmp_path / "token").write_text("t")
    api = Api(APIServer("127.0.0.1", 1, tmp_path / "ca.crt", tmp_path / "token"))
    with pytest.raises(Unreachable, match="refused"), api.session() as session:
        session.get("/x")


def test_names_are_quoted():
    assert object_path("/api/v1/nodes", "a/../b") == "/api/v1/nodes/a%2F..%2Fb"
    assert selecting("/api/v1/nodes", "a&b", watch="1") == "/api/v1/nodes?fieldSelector=metadata.name%3Da%26b&watch=1"
