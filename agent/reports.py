"""Turns what the watches report into letters for the main loop, and into log lines where a human should know."""

from typing import Any

from agent.claim import Claimant, node_seen
from agent.log import log
from agent.mailbox import Mailbox
from agent.patterns import read_config
from agent.trigger import ConfigSeen, NodeGone


class Reports:
    """Called by the watching threads, each with its own kind of object."""

    def __init__(self, mailbox: Mailbox, claimant: Claimant) -> None:
        self.mailbox = mailbox
        self.claimant = claimant
        self._last_doubt: str | None = None

    def config(self, item: dict[str, Any] | None) -> None:
        """The ConfigMap as it is now, or that there is none."""
        reading = read_config(None if item is None else item.get("data"))
        for problem in reading.problems:
            log("error", "config-problem", problem=problem)
        self.mailbox.put(ConfigSeen(reading.patterns))

    def node(self, item: dict[str, Any] | None) -> None:
        """The Node as it is now, or that there is none."""
        if item is None:
            self.mailbox.put(NodeGone())
            return
        if "status" in item:
            self._warn_early(self.claimant.doubt(item))
        self.mailbox.put(node_seen(item["metadata"]))

    def _warn_early(self, doubt: str | None) -> None:
        # The log should name a wrong host before the owner relies on the agent.
        if doubt is not None and doubt != self._last_doubt:
            log("error", "wrong-host", problem=doubt, next="no request will be written to it")
        self._last_doubt = doubt
