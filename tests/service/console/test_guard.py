"""Which requests pass, by the headers that browsers send."""

from typing import Any

import pytest

from service.console.guard import AllowedOrigins

PUBLIC = "https://console.example.com"
ORIGINS = AllowedOrigins(frozenset({PUBLIC, "https://console.example.com:8443"}))


def refusal(method: str, **headers: str) -> str:
    named = {name.replace("_", "-"): text for name, text in {"host": "console.example.com", **headers}.items()}
    return ORIGINS.refusal(method, {name.encode(): text.encode() for name, text in named.items()})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "CONSOLE.example.com"},
        {"origin": PUBLIC, "sec_fetch_site": "same-origin"},
        {"sec_fetch_site": "none", "sec_fetch_mode": "navigate"},
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"},
    ],
    ids=["plain", "host in capitals", "own page", "typed address", "link on another page"],
)
def test_pages_are_read_by_their_own_address(headers: dict[str, Any]) -> None:
    assert refusal("GET", **headers) == ""


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example.com"},
        {"host": "console.example.com:80"},
        {"host": "console.example.com.evil.com"},
        {"host": ""},
        {"origin": "http://console.example.com"},
        {"origin": "https://console.example.com:8443"},
        {"origin": "null"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"},
    ],
    ids=["another host", "another port", "a longer name", "no host", "without TLS", "another own address", "opaque",
         "another port's page", "another site"],
)  # fmt: skip
def test_what_another_page_makes_a_browser_send_is_refused(headers: dict[str, Any]) -> None:
    for method in ("GET", "POST"):
        assert refusal(method, **({"origin": PUBLIC} | headers if method == "POST" else headers)) != ""


def test_a_change_names_its_origin() -> None:
    assert refusal("POST") != ""
    assert refusal("POST", origin=PUBLIC) == ""
    assert refusal("POST", host="console.example.com:8443", origin="https://console.example.com:8443") == ""
