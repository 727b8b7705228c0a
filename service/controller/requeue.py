"""Puts a key back into the queue after a pass over its object, as the `Requeue` of that pass says."""

from typing import Final, assert_never

import structlog

from service.decide.requeue import BackoffKind, Requeue
from service.runtime.backoff import Backoff, Failures
from service.runtime.key import Key
from service.runtime.queue import URGENT, Queue

CONFLICT_PAUSES: Final = Backoff(base=0.1, cap=30.0)
"""A conflict usually ends at once; where it does not, such as behind a webhook, the pauses grow."""

log = structlog.get_logger(__name__)


class Requeuer:
    """Counts the conflicts of each key in a row; the queue counts its failures."""

    def __init__(self, queue: Queue, conflicts: Failures | None = None) -> None:
        self._queue = queue
        self._conflicts = conflicts or Failures(CONFLICT_PAUSES)

    def __call__(self, key: Key, requeue: Requeue) -> None:
        """Requeues a key after one pass."""
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
        """The real seconds until the next attempt; counts failures in a row, and resets the count after a success."""
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
        """The object is gone, or belongs to another replica now."""
        self._conflicts.succeeded(key)
        self._queue.discard(key)
