"""Which kind a provider's object of a ScheduledMachine may be, and what it means that nobody can look at it."""

from dataclasses import replace

from service.decide.reasons import Reason
from service.decide.world import Problem, ReadFailure, Role, World
from service.kube.errors import KubeError, NotFound, Rejected, Unauthorized, Unavailable
from service.objects.subject import Subject
from service.observe.watches import NotListedError


def recorded(subject: Subject, role: Role) -> tuple[str, str] | None:
    """The apiVersion and kind of an object that exists, as far as the status knows."""
    ref = subject.status.bootstrap_ref if role is Role.BOOTSTRAP else subject.status.infrastructure_ref
    return (ref.api_version, ref.kind) if ref is not None else None


def possible(subject: Subject, role: Role) -> list[tuple[str, str]]:
    """What an object of a role may be: as recorded, or the same kind in the version that the spec names."""
    there, spec = recorded(subject, role), subject.intent.spec
    known = [] if there is None else [there]
    if spec is None:
        return known
    provider = spec.bootstrap_spec if role is Role.BOOTSTRAP else spec.infrastructure_spec
    wanted = provider.api_version, provider.kind
    return known if there is not None and _of_group(there) != _of_group(wanted) else [*known, wanted]


def _of_group(kind: tuple[str, str]) -> tuple[str, str]:
    return kind[0].rpartition("/")[0], kind[1]


def not_seen(world: World, role: Role, error: KubeError) -> World:
    """The world with something in it that could not be looked at."""
    passing = isinstance(error, Unavailable) and not isinstance(error, NotListedError)
    unseen = ReadFailure(Problem(_reason(error), error.message), passing)
    return replace(world, unreadable={**world.unreadable, role: unseen})


def _reason(error: KubeError) -> Reason:
    if isinstance(error, Rejected | Unauthorized):
        return Reason.for_error(type(error))
    return Reason.KIND_NOT_SERVED if isinstance(error, NotFound) else Reason.API_UNAVAILABLE
