"""Puts a key back into the queue as the pass over its object asks for: the one place where a pass is followed up."""

from typing import Final, assert_never

import structlog

from service.decide.requeue import BackoffKind, Requeue
from service.runtime.backoff import Backoff, Failures
from service.runtime.key import Key
from service.runtime.queue import URGENT, Queue

CONFLICT_PAUSES: Final = Backoff(base=0.1, cap=30.0)
"""A conflict is usually over at once; where it never ends, such as behind a webhook, the pauses grow."""

log = structlog.get_logger(__name__)


class Requeuer:
    """Remembers how often each key has conflicted in a row; the queue remembers its failures."""

    def __init__(self, queue: Queue, conflicts: Failures | None = None) -> None:
        self._queue = queue
        self._conflicts = conflicts or Failures(CONFLICT_PAUSES)

    def __call__(self, key: Key, requeue: Requeue) -> None:
        """Follows up one pass."""
        if requeue.at is not None:
            self._queue.add(key, due=requeue.at, priority=requeue.priority)
        if requeue.urgent:
            self._queue.add(key, due=URGENT)
        if requeue.after is not None:
            self._queue.retry(key, after=requeue.after.total_seconds())
        pause = self._back_off(key, requeue)
        if requeue.failure is not None:
            log.warning("will try again", object=str(key), error=requeue.failure, seconds=pause)

    def _back_off(self, key: Key, requeue: Requeue) -> float | None:
        """The real seconds until the next attempt; counts or forgets what went wrong before."""
        if requeue.backoff is not BackoffKind.CONFLICT:
            self._conflicts.succeeded(key)
        match requeue.backoff:
            case BackoffKind.CONFLICT:
                return self._queue.retry(key, after=self._conflicts.failed(key))
            case BackoffKind.FAILURE:
                return round(self._queue.retry(key), 1)
            case None:
                if requeue.failure is None:
                    self._queue.succeeded(key)
                return requeue.after.total_seconds() if requeue.after else None
            case _:
                assert_never(requeue.backoff)

    def forget(self, key: Key) -> None:
        """The object is gone, or another replica's now."""
        self._conflicts.succeeded(key)
        self._queue.discard(key)
