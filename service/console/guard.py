"""What every request passes: the right Host, for changes the right Origin, a small body, and strict headers on answers.

A page of another site can make a browser send requests to 127.0.0.1; by DNS rebinding it can even read the answers. The
Host header and the Origin header give both away.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from service.console import answers

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_MAX: Final = 64 * 1024
SAFE: Final = ("GET", "HEAD")
OWN_SITES: Final = (b"same-origin", b"none")
"""Where a request comes from, as browsers say: our own pages, or the user. Another port of this host is `same-site`."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


@dataclass(frozen=True, slots=True)
class AllowedOrigins:
    """The addresses under which browsers reach the console, such as `https://console.example.com`."""

    origins: frozenset[str]

    @classmethod
    def loopback(cls, port: int) -> "AllowedOrigins":
        """For a console on this machine."""
        return cls(frozenset({f"http://127.0.0.1:{port}", f"http://localhost:{port}"}))

    def refusal(self, method: str, headers: dict[bytes, bytes]) -> str:
        """Why a request is refused; empty if it is not."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        own = {each.encode() for each in self.origins if each.partition("://")[2] == host}
        if not own:
            return "The Host header names another server."
        site = headers.get(b"sec-fetch-site", b"same-origin")
        if site not in OWN_SITES and headers.get(b"sec-fetch-mode") != b"navigate":
            return "A page of another server made this request."
        origin = headers.get(b"origin")
        if origin not in own and (method not in SAFE or origin is not None):
            return "The Origin header does not name this console."
        return ""


@dataclass(frozen=True, slots=True)
class Guard:
    """ASGI middleware around the application."""

    app: App
    origins: AllowedOrigins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses, or passes on and adds headers to the answer."""
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        refusal = self.origins.refusal(scope["method"], headers)
        if refusal:
            await answers.refused(403, refusal)(scope, receive, _sealed(send))
            return
        if _announced(headers) > BODY_MAX:
            await answers.refused(413, f"The body has more than {BODY_MAX} bytes.")(scope, receive, _sealed(send))
            return
        await self.app(scope, _bounded(receive), _sealed(send))


def _sealed(send: Send) -> Send:
    async def sealed(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *HEADERS]
        await send(message)

    return sealed


def _announced(headers: dict[bytes, bytes]) -> int:
    """The length of the body that the head announces; 0 if it announces none."""
    length = headers.get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


def _bounded(receive: Receive) -> Receive:
    """Ends a body that is too long, without reading the rest."""
    size = 0

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > BODY_MAX:
            return {"type": "http.disconnect"}
        return message

    return bounded
