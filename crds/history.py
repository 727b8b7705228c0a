"""The last services of a machine, kept in its status: they teach `Auto`, and reports count them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from crds.base import Instant, Lax, Model
from crds.invalid import InvalidValue

HISTORY_MAX: Final = 10
"""How many services are kept, the one under way included."""


class EndReason(StrEnum):
    """Why a service ended."""

    WINDOW_CLOSED = "WindowClosed"
    OVERRIDE_CLOSED = "OverrideClosed"
    KILL_SWITCH = "KillSwitch"
    RECLAIMED = "Reclaimed"
    REPLACED = "Replaced"
    CLUSTER_GONE = "ClusterGone"
    DELETED = "Deleted"
    MACHINE_DELETED = "MachineDeleted"


class ServiceRecord(Model):
    """One Machine, from its creation until it and its objects are gone."""

    opened: Instant | None = Field(
        default=None, description="Opening of the window that it was created for; absent if that was always open."
    )
    requested: Instant = Field(description="When the Machine was created.")
    ready: Instant | None = Field(default=None, description="When its Node was Ready for the first time.")
    shutdown: Instant | None = Field(default=None, description="When its shutdown began.")
    closed: Instant | None = Field(
        default=None, description="When its window closed or closes, if that is why the shutdown began."
    )
    gone: Instant | None = Field(default=None, description="When all its objects were gone.")
    reason: Annotated[EndReason, Lax] | None = Field(
        default=None,
        description="Why it ended: WindowClosed, OverrideClosed, KillSwitch, Reclaimed, Replaced (it was unhealthy), "
        "ClusterGone, Deleted (the ScheduledMachine was) or MachineDeleted (by another actor).",
    )
    undrained: bool | None = Field(
        default=None, description="true if pods were still on the Node when the time for its drain was over."
    )
    overridden: bool | None = Field(default=None, description="true if an override was in force at some time of it.")

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left."""
        return self.gone is not None


@dataclass(frozen=True, slots=True)
class History:
    """The services as they are stored, the newest last.

    Every pass reads and compares a status, and hardly any looks at more than the newest service: parsing them all would
    cost several times as much as the rest of the status.
    """

    stored: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)

    @property
    def current(self) -> ServiceRecord | None:
        """The service under way."""
        newest = _read(self.stored[-1]) if self.stored else None
        return None if newest is None or newest.is_over else newest

    @property
    def records(self) -> tuple[ServiceRecord, ...]:
        """All services that can be read."""
        return tuple(filter(None, map(_read, self.stored)))

    def replaced(self, record: ServiceRecord) -> "History":
        """With another text for the newest."""
        return History((*self.stored[:-1], record.to_json()))

    def added(self, record: ServiceRecord) -> "History":
        """With one more; the oldest leaves if there are too many."""
        return History((*self.stored, record.to_json())[-HISTORY_MAX:])

    @classmethod
    def of(cls, given: Any) -> "History":
        """From a list as stored; what in it is no object is left out."""
        if isinstance(given, History):
            return given
        if not isinstance(given, list):
            raise InvalidValue("must be a list")
        return cls(tuple(each for each in given if isinstance(each, dict))[-HISTORY_MAX:])

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        written = core_schema.plain_serializer_function_ser_schema(_write, when_used="json")
        return core_schema.no_info_plain_validator_function(cls.of, serialization=written)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        items = core_schema.list_schema(ServiceRecord.__pydantic_core_schema__, max_length=HISTORY_MAX)
        return handler(items)


def _write(history: History) -> list[Mapping[str, Any]]:
    return list(history.stored)


def _read(stored: Mapping[str, Any]) -> ServiceRecord | None:
    """A record; without its reason if that is one of a newer version, as its times count all the same."""
    return _parsed(stored) or _parsed({name: value for name, value in stored.items() if name != "reason"})


def _parsed(stored: Mapping[str, Any]) -> ServiceRecord | None:
    try:
        return ServiceRecord.parse(stored)
    except ValidationError:
        return None
