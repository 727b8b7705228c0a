"""What the smaller controllers share with the one that they run beside."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from service.act.events import EventRecorder
from service.kube.resource import Resource
from service.runtime.key import Key


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What the controllers of calendars and overrides need of the one of ScheduledMachines."""

    defined: Callable[[Resource], bool]
    """Whether the CustomResourceDefinition of a kind exists."""
    owns: Callable[[Key], bool]
    acting_for: Callable[[Key], AbstractContextManager[None]]
    events: EventRecorder
