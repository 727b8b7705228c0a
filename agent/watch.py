"""Follows one object of the API server in a thread of its own and reports each state of it."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent.api import JSON, METADATA_ONLY, Api, ApiError, Refused, selecting
from agent.backoff import backoff
from agent.log import log
from crds.names import RECLAIM_CONFIG_PREFIX, RECLAIM_NAMESPACE

WATCH_SECONDS = 240
RETRY_CAP = 15.0
SETTLED_SECONDS = 2.0
GONE = 410

Report = Callable[[dict[str, Any] | None], None]


@dataclass(frozen=True, slots=True)
class Target:
    """One object to follow."""

    what: str
    collection: str
    name: str
    watch_as: str = JSON


def node_target(node: str) -> Target:
    """The Node; changes come without its status, which is large and says nothing about requests."""
    return Target("node", "/api/v1/nodes", node, METADATA_ONLY)


def config_target(node: str) -> Target:
    """The ConfigMap with the patterns for this node."""
    collection = f"/api/v1/namespaces/{RECLAIM_NAMESPACE}/configmaps"
    return Target("config", collection, f"{RECLAIM_CONFIG_PREFIX}{node}")


class Follower:
    """Lists and watches one object until the process ends; retries with back-off after every failure."""

    def __init__(self, api: Api, target: Target, report: Report) -> None:
        self.api = api
        self.target = target
        self.report = report
        self._failures = 0
        self._last_problem = ""

    def run(self) -> None:
        """Never returns."""
        while True:
            began = time.monotonic()
            healthy = self._once() and time.monotonic() - began >= SETTLED_SECONDS
            self._failures = 0 if healthy else self._failures + 1
            if not healthy:
                time.sleep(backoff(self._failures, RETRY_CAP, random.random()))  # noqa: S311 - jitter

    def _once(self) -> bool:
        try:
            self.report_current_and_changes()
        except ApiError as error:
            if not (isinstance(error, Refused) and error.status == GONE):
                self._complain(str(error))
            return False
        return True

    def report_current_and_changes(self) -> None:
        """One list and one watch; the end of the stream is ordinary, the caller lists again."""
        with self.api.session() as session:
            listing = session.get(selecting(self.target.collection, self.target.name))
            items = listing.get("items") or []
            self.report(items[0] if items else None)
            self._recovered()
            for event in session.stream(self._watch_path(listing["metadata"]["resourceVersion"]), self.target.watch_as):
                self._handle(event["type"], event["object"])

    def _watch_path(self, version: str) -> str:
        seconds = str(WATCH_SECONDS + random.randrange(60))  # noqa: S311 - spreads the agents of a large cluster
        query = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": seconds, "resourceVersion": version}
        return selecting(self.target.collection, self.target.name, **query)

    def _handle(self, kind: str, item: dict[str, Any]) -> None:
        if kind in {"ADDED", "MODIFIED"}:
            self.report(item)
        elif kind == "DELETED":
            self.report(None)
        elif kind == "ERROR":
            raise Refused(int(item.get("code", 500)), str(item.get("message", "the watch failed")))

    def _complain(self, problem: str) -> None:
        if problem != self._last_problem:
            log("warning", "watch-interrupted", what=self.target.what, name=self.target.name, problem=problem)
        self._last_problem = problem

    def _recovered(self) -> None:
        if self._last_problem:
            log("info", "watch-resumed", what=self.target.what, name=self.target.name)
        self._last_problem = ""
