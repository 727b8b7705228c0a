"""Structured logs: one line per event, the object's key as a field, no secrets, and no value that can forge a line."""

import logging
import sys
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, Final, Literal, TextIO

import orjson
import structlog
from structlog.typing import EventDict, WrappedLogger

SECRET_WORDS: Final = ("token", "password", "secret_data", "private_key", "authorization", "kubeconfig_data", "key_pem")
HIDDEN: Final = "(hidden)"
VALUE_LIMIT: Final = 4096
TRACE_LIMIT: Final = 64 * 1024
# Libraries whose info messages repeat what our own events say.
QUIET: Final = ("uvicorn.error", "uvicorn.asgi", "asyncio", "kubernetes_asyncio", "aiohttp", "httpx")


def configure(level: str = "info", style: Literal["json", "console"] = "json", stream: TextIO | None = None) -> None:
    """Sets up logging for the process and its libraries; called once, at the start."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _safe,
    ]
    renderer = _renderer(style)
    out = stream or sys.stderr
    structlog.configure(
        # Straight to the stream: the standard library's loggers would cost several times as much.
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=partial(_Lines, out),
        cache_logger_on_first_use=False,
    )
    _configure_stdlib(threshold, _formatter(shared, renderer), out)


class _Lines:
    """Writes lines to a stream; a stream that fails, such as on a full disk, must not stop the process."""

    def __init__(self, stream: TextIO, *_names: str) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(line + "\n")
            self._stream.flush()

    debug = info = warning = error = critical = msg


def _renderer(style: str) -> Any:
    if style == "json":
        return structlog.processors.JSONRenderer(serializer=_json)
    return structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)


def _formatter(shared: list[Any], renderer: Any) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )


def _configure_stdlib(threshold: int, formatter: logging.Formatter, stream: TextIO) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(threshold)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING))


def _safe(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {key: HIDDEN if _is_secret(key) else _bounded(key, value) for key, value in event.items()}


@lru_cache(1024)  # there are few field names, and each is checked in every line
def _is_secret(key: str) -> bool:
    lowered = key.lower()
    return any(word in lowered for word in SECRET_WORDS)


def _bounded(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return _trace(value) if key == "exception" else _one_line(value)


def _one_line(text: str) -> str:
    # A name with a newline must not look like a second event, and an escape code must not reach the terminal.
    if not text.isprintable():
        text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:VALUE_LIMIT])
    return text if len(text) <= VALUE_LIMIT else text[: VALUE_LIMIT - 1] + "…"


def _trace(text: str) -> str:
    """A traceback keeps its lines, indented: text that an error quotes must not look like an event."""
    return "\n".join(f"  {_one_line(line)}" for line in text[-TRACE_LIMIT:].split("\n"))


def _json(event: Any, **_options: Any) -> str:
    return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
