"""Which kinds a provider's object of a ScheduledMachine may have, and what it means if one cannot be read."""

from dataclasses import replace

from service.decide.reasons import Reason
from service.decide.world import Problem, ReadFailure, Role, World
from service.kube.errors import KubeError, NotFound, Rejected, Unauthorized, Unavailable
from service.objects.subject import Subject
from service.observe.provider_watches import NotListedError


def recorded_kind(subject: Subject, role: Role) -> tuple[str, str] | None:
    """The apiVersion and kind of an object that exists, as the status records them."""
    ref = subject.status.bootstrap_ref if role is Role.BOOTSTRAP else subject.status.infrastructure_ref
    return (ref.api_version, ref.kind) if ref is not None else None


def possible_kinds(subject: Subject, role: Role) -> list[tuple[str, str]]:
    """The kinds that an object of a role may have: as recorded, or the same kind in the version that the spec names."""
    recorded = recorded_kind(subject, role)
    spec = subject.intent.spec
    known = [] if recorded is None else [recorded]
    if spec is None:
        return known
    provider = spec.bootstrap_spec if role is Role.BOOTSTRAP else spec.infrastructure_spec
    wanted = (provider.api_version, provider.kind)
    if recorded is not None and _group_kind(recorded) != _group_kind(wanted):
        return known
    return [*known, wanted]


def _group_kind(kind: tuple[str, str]) -> tuple[str, str]:
    return kind[0].rpartition("/")[0], kind[1]


def with_read_failure(world: World, role: Role, error: KubeError) -> World:
    """The world with an object that could not be read."""
    transient = isinstance(error, Unavailable) and not isinstance(error, NotListedError)
    failure = ReadFailure(Problem(_reason(error), error.message), transient)
    return replace(world, unreadable={**world.unreadable, role: failure})


def _reason(error: KubeError) -> Reason:
    if isinstance(error, Rejected | Unauthorized):
        return Reason.for_error(type(error))
    return Reason.KIND_NOT_SERVED if isinstance(error, NotFound) else Reason.API_UNAVAILABLE
