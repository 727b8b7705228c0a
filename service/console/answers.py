"""Answers of the console: JSON that no cache keeps."""

from typing import Any, Final

import orjson
from fastapi import Response

NO_STORE: Final = {"Cache-Control": "no-store"}


def data(content: Any, status: int = 200) -> Response:
    """Data for the page's scripts."""
    return packed(orjson.dumps(content), status)


def packed(content: bytes, status: int = 200) -> Response:
    """JSON that is packed already."""
    return Response(content, status, headers=NO_STORE, media_type="application/json")


def refused(status: int, why: str) -> Response:
    """An error, with a sentence for people."""
    return data({"error": why}, status)
