"""Tokens and sessions of the console."""

from typing import Any

from service.console.sessions import OWNER_MAX, SESSIONS_MAX, OneTimeToken, PageKeys, Sessions

ALICE: Any = "what Alice sees"


def test_a_token_is_good_once_and_a_wrong_one_does_not_use_it_up() -> None:
    token = OneTimeToken()
    assert not token.redeem("guess")
    assert token.redeem(token.text)
    assert not token.redeem(token.text)


def test_a_session_is_found_by_its_cookie_until_it_is_closed() -> None:
    sessions = Sessions[Any]()
    cookie = sessions.open(ALICE)
    assert sessions.find(cookie) is ALICE
    assert sessions.find(cookie[:-1]) is None
    assert sessions.find(None) is None
    sessions.close(cookie)
    assert sessions.find(cookie) is None


def test_a_session_ends_after_its_time_and_when_nobody_uses_it() -> None:
    now, ended = [0.0], list[Any]()
    sessions = Sessions[Any](lasts=100, idle=10, monotonic=lambda: now[0], on_end=ended.append)
    used, left = sessions.open(ALICE), sessions.open("what Bob sees")
    for now[0] in range(5, 101, 5):
        assert sessions.find(used) is ALICE
    assert sessions.find(left) is None
    now[0] = 101.0
    assert sessions.find(used) is None
    assert ended == ["what Bob sees", ALICE]


def test_the_session_used_least_recently_makes_room() -> None:
    now = [0.0]
    sessions = Sessions[Any](monotonic=lambda: now[0])
    first = sessions.open(ALICE)
    for now[0] in range(1, SESSIONS_MAX + 1):
        last = sessions.open(ALICE)
    assert sessions.find(first) is None
    assert sessions.find(last) is ALICE


def test_a_session_that_nobody_uses_ends_without_being_asked_for() -> None:
    now, ended = [0.0], list[Any]()
    sessions = Sessions[Any](idle=10, monotonic=lambda: now[0], on_end=ended.append)
    sessions.open(ALICE)
    now[0] = 11.0
    sessions.sweep()
    assert ended == [ALICE]


def test_a_user_who_logs_in_again_and_again_ends_only_sessions_of_their_own() -> None:
    now = [0.0]
    sessions = Sessions[Any](monotonic=lambda: now[0])
    alice = sessions.open(ALICE, b"alice")
    mallory = []
    for now[0] in range(1, SESSIONS_MAX + 1):
        mallory.append(sessions.open("what Mallory sees", b"mallory"))
    assert sessions.find(alice) is ALICE
    assert [bool(sessions.find(each)) for each in mallory].count(True) == OWNER_MAX
    assert sessions.find(mallory[-1])


def test_a_page_key_belongs_to_one_cookie_and_one_console() -> None:
    keys = PageKeys()
    assert keys.match("cookie", keys.of("cookie"))
    for cookie, given in (("another", keys.of("cookie")), ("cookie", ""), ("cookie", "é"), ("", "")):
        assert not keys.match(cookie, given)
    assert not PageKeys().match("cookie", keys.of("cookie"))
