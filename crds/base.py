"""What all models share: strict, frozen, camelCase outside; used by the spec and the status."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    PlainSerializer,
    Strict,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel

from crds.invalid import InvalidValue

_ABBREVIATIONS: Final = {"provider_id": "providerID", "machine_uid": "machineUID"}


def camel(name: str) -> str:
    """The name that a field has in YAML."""
    return _ABBREVIATIONS.get(name) or to_camel(name)


class Model(BaseModel):
    """A frozen value; nothing is coerced, and an explicit null of an optional field means absent."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="ignore",
        alias_generator=camel,
        validate_by_name=True,
        validate_by_alias=True,
        arbitrary_types_allowed=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _null_means_absent(cls, given: Any) -> Any:
        if type(given) is not dict or None not in given.values():
            return given
        known = field_names(cls)
        return {key: value for key, value in given.items() if value is not None or key not in known}

    @classmethod
    def parse(cls, raw: Any, *, unknown: Literal["forbid", "ignore"] = "ignore") -> Self:
        """Read what came from outside: camelCase only, unknown fields ignored or refused.

        Raises:
            pydantic.ValidationError: naming everything that is wrong.
        """
        return cls.model_validate(raw, extra=unknown, by_alias=True, by_name=False)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data in camelCase, without absent fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class StoredStatus(Model):
    """A status as it is stored; all of its fields have defaults."""

    @classmethod
    def read(cls, raw: Any) -> Self:
        """Read a stored status; one that makes no sense counts as none."""
        try:
            return cls.parse(raw if isinstance(raw, dict) else {})
        except ValidationError:
            return cls()


def field_names(model: type[BaseModel]) -> frozenset[str]:
    """The names of a model's fields as users write them."""
    names = _FIELD_NAMES.get(model)
    if names is None:
        names = frozenset(field.alias or name for name, field in model.model_fields.items())
        _FIELD_NAMES[model] = names
    return names


_FIELD_NAMES: Final[dict[type[BaseModel], frozenset[str]]] = {}


_LIKE: Final = "like 2026-03-08T07:00:00Z"


def _instant(given: Any) -> Any:
    """An aware UTC datetime in whole seconds, from RFC 3339 text or a datetime.

    Whole seconds, because that is what is stored: a status compares equal to itself read back.
    """
    try:
        moment = datetime.fromisoformat(given) if isinstance(given, str) else given
        if not isinstance(moment, datetime):
            raise InvalidValue(f"must be a time {_LIKE}")
        if moment.tzinfo is None:
            raise InvalidValue(f"has no time zone; write it {_LIKE}")
        return moment.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError) as error:
        raise error if isinstance(error, InvalidValue) else InvalidValue(f"is not a time; write it {_LIKE}") from None


def rfc3339(moment: datetime) -> str:
    """An instant as Kubernetes writes it: `2026-03-08T07:00:00Z`."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


Instant = Annotated[
    datetime,
    BeforeValidator(_instant),
    PlainSerializer(rfc3339, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time", "maxLength": 64}),
]

Lax = Strict(strict=False)
"""Marks what JSON cannot say itself: a tuple, given as a list, or an enum, given as text. Inner values stay strict."""


def map_list(*keys: str) -> dict[str, JsonValue]:
    """Schema words for a list whose entries are identified by these fields."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def atomic_list(*, nullable: bool = False) -> dict[str, JsonValue]:
    """Schema words for a list that has one owner as a whole."""
    words: dict[str, JsonValue] = {"x-kubernetes-list-type": "atomic"}
    return {**words, "nullable": True} if nullable else words
