"""Which machines of a long list a person wants to see, and in which order. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from service.fleet.summary import Summary

_FAR: Final = datetime.max.replace(tzinfo=UTC)


class Sort(StrEnum):
    """What comes first."""

    ATTENTION = "attention"
    NAME = "name"
    NEXT = "next"
    SINCE = "since"


_KEYS: Final[dict[Sort, Callable[[Summary], Any]]] = {
    Sort.ATTENTION: lambda each: not each.attention,
    Sort.NAME: lambda each: each.namespace,
    Sort.NEXT: lambda each: each.next.at if each.next else _FAR,
    Sort.SINCE: lambda each: -each.since.timestamp() if each.since else 0.0,
}


@dataclass(frozen=True, slots=True)
class Filter:
    """Which machines are shown; a field that is empty leaves out none."""

    attention: bool = False
    phases: tuple[str, ...] = ()
    cluster: str = ""
    text: str = ""
    """Words that name, namespace, cluster, phase, Node or message contain, each of them."""
    sort: Sort = Sort.ATTENTION

    def takes(self, summary: Summary) -> bool:
        """Whether a machine is shown."""
        wanted = {phase.casefold() for phase in self.phases}
        return (
            (not wanted or summary.phase.casefold() in wanted)
            and (not self.cluster or summary.cluster == self.cluster)
            and (bool(summary.attention) or not self.attention)
            and self._has_words(summary)
        )

    def chosen(self, summaries: Iterable[Summary]) -> list[Summary]:
        """Those that are shown, in their order; those that sort alike by namespace and name."""
        key = _KEYS[self.sort]
        return sorted(filter(self.takes, summaries), key=lambda each: (key(each), each.namespace, each.name))

    def _has_words(self, summary: Summary) -> bool:
        if not self.text:
            return True
        fields = (summary.namespace, summary.name, summary.cluster, summary.phase, summary.node, summary.message)
        said = "\n".join(fields).casefold()
        return all(word in said for word in self.text.casefold().split())
