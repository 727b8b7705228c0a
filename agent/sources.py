"""Chooses where processes are learned of: the kernel's events where it grants them, else polling."""

from typing import Literal, Protocol

from agent.log import log
from agent.netlink import EventSource, EventsUnavailable
from agent.polling import PollingSource
from agent.proc import ProcTable

SourceChoice = Literal["auto", "events", "polling"]


class ProcessSource(Protocol):
    """Names processes worth examining. It is opened before the first full scan, so that none is missed in between."""

    @property
    def name(self) -> str:
        """What it is called in the log."""
        ...

    def open(self) -> None:
        """Begin."""
        ...

    def close(self) -> None:
        """End."""
        ...

    def fileno(self) -> int | None:
        """A descriptor that becomes readable when there are candidates."""
        ...

    def wait(self, now: float) -> float | None:
        """Seconds until candidates should be asked for without an event."""
        ...

    def candidates(self, now: float) -> list[int]:
        """Pids to examine."""
        ...


def choose(choice: SourceChoice, table: ProcTable, interval: float) -> ProcessSource:
    """The source to use on this host, opened and checked; the log says which one and why."""
    if choice == "polling":
        log("info", "source", source="polling", interval=interval, why="requested by --source")
        return PollingSource(table, interval)
    events = EventSource(table.pids)
    try:
        events.open()
    except EventsUnavailable as error:
        if choice == "events":
            raise
        return fall_back(table, interval, str(error))
    events.close()
    log("info", "source", source="events", why="the kernel grants process events")
    return events


def fall_back(table: ProcTable, interval: float, why: str) -> ProcessSource:
    """Polling, because the kernel does not grant events."""
    log("warning", "source", source="polling", interval=interval, why=why)
    return PollingSource(table, interval)
