"""The receiver of notifications: its address and credentials, from settings and from the files of a Secret.

The files are read again for each request, as the kubelet replaces them when the Secret changes. Neither address nor
credentials are logged beyond the host's name: both may be secret.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import aiohttp

TIMEOUT_SECONDS: Final = 10.0
FILE_MAX: Final = 1024 * 1024
"""As much as a Secret holds; a bundle of CAs can be long."""
REFUSALS: Final = frozenset({400, 413, 415, 422})
"""Answers about this one notification. Others, such as 401 or a redirect, end when an administrator acts."""
RETRY_AFTER_MAX: Final = 60.0
"""As long as the longest pause without one: the notifications behind this one wait as well."""


class SinkRefused(Exception):
    """The receiver does not take this notification, and will not later: it is not sent again."""


class Unanswered(Exception):
    """No answer, or one that can be another later, after `retry_after` seconds if it says so."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Where the address and the credentials are; the folder holds `url`, `authorization` and `ca.crt`, all optional."""

    url: str | None = None
    folder: Path | None = None

    @property
    def is_set(self) -> bool:
        """Whether notifications are sent."""
        return self.url is not None or self.folder is not None


class Sink:
    """Posts one body at a time; follows no redirect, and verifies certificates."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._authority = b""
        self._tls = ssl.create_default_context()
        self._session: aiohttp.ClientSession | None = None

    async def post(self, body: bytes, content_type: str) -> None:
        """Raises `SinkRefused` or `Unanswered` unless the receiver takes it."""
        try:
            url, headers = self._address(), {"Content-Type": content_type, **self._credentials()}
            tls = self._trusted()
        except (OSError, ValueError) as error:
            raise Unanswered(f"the settings of notifications cannot be used: {error}") from None
        import aiohttp  # noqa: PLC0415 - only now: most operators send no notifications, and it takes a tenth of a second

        session = self._opened()
        try:
            async with session.post(url, data=body, headers=headers, ssl=tls, allow_redirects=False) as answer:
                _judge(answer.status, answer.headers.get("Retry-After"))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            # The text of such an error can hold the address. `ValueError`: a host name that cannot be encoded.
            raise Unanswered(f"{urlsplit(url).hostname}: {type(error).__name__}") from None

    async def close(self) -> None:
        """Closes the connection."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> "aiohttp.ClientSession":
        import aiohttp  # noqa: PLC0415 - likewise

        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
            self._session = aiohttp.ClientSession(timeout=timeout, trust_env=False)
        return self._session

    def _address(self) -> str:
        url = self._read("url").decode().strip() or self._options.url or ""
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname or parts.username:
            raise ValueError("the address must begin with https:// and name a host and no user")
        return url

    def _credentials(self) -> dict[str, str]:
        value = self._read("authorization").decode().strip()
        if any(ord(letter) < 32 for letter in value):
            raise ValueError("authorization must be one line")
        return {"Authorization": value} if value else {}

    def _trusted(self) -> ssl.SSLContext:
        authority = self._read("ca.crt")
        if authority != self._authority:
            bundle = authority.decode("ascii", "ignore")  # it can have comments in any language
            if authority and "CERTIFICATE" not in bundle:
                raise ValueError("ca.crt holds no certificate")
            self._tls = ssl.create_default_context(cadata=bundle or None)
            self._authority = authority
        return self._tls

    def _read(self, name: str) -> bytes:
        folder = self._options.folder
        path = folder / name if folder else None
        if path is None or not path.exists():
            return b""
        with path.open("rb") as file:
            return file.read(FILE_MAX)


def _judge(status: int, retry_after: str | None) -> None:
    if 200 <= status < 300:
        return
    if status in REFUSALS:
        raise SinkRefused(f"HTTP {status}")
    raise Unanswered(f"HTTP {status}", _seconds(retry_after))


def _seconds(text: str | None) -> float | None:
    if text is None or not (text.isascii() and text.isdigit()):
        return None
    return min(float(text), RETRY_AFTER_MAX)
