"""Receives the body of a request: bounded in size and time, and held in memory only as far as it can be a review."""

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from starlette.types import Message, Receive

from webhooks.review import BODY_LIMIT, MalformedReviewError

# What is over the limit is read and dropped up to this, so that the client gets to see the answer.
DROP_LIMIT: Final = 16 * 1024 * 1024
BODY_SECONDS: Final = 3.0
"""API servers wait no longer for an answer, and send the largest body in a fraction of it."""


class TooLargeError(Exception):
    """More was sent than any review can be long."""


@dataclass(slots=True)
class Body:
    """A body of which a part has arrived."""

    size: int = 0
    more: bool = True
    _chunks: list[bytes] = field(default_factory=list)

    def take(self, message: Message) -> None:
        """Adds what a message brings."""
        if message["type"] != "http.request":
            raise MalformedReviewError("the connection ended within the body")
        chunk, self.more = message.get("body", b""), message.get("more_body", False)
        self.size += len(chunk)
        if self.size < BODY_LIMIT:
            self._chunks.append(chunk)
        else:
            self._chunks.clear()

    async def receive(self, receive: Receive, limit: int) -> None:
        """Goes on until the body is complete or `limit` bytes long."""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while self.more and self.size < limit:
                    self.take(await receive())
        except TimeoutError:
            raise MalformedReviewError("the body did not arrive in time", status=HTTPStatus.REQUEST_TIMEOUT) from None

    def whole(self) -> bytes:
        """The complete body; `TooLargeError` if it is no review."""
        if self.more or self.size >= BODY_LIMIT:
            raise TooLargeError
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
