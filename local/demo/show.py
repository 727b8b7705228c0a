"""Puts the demo together: the clusters, the operator on its fast clock, what is watched, and how it is shown."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from rich.console import Console
from rich.live import Live

from crds import rules
from crds.base import rfc3339
from crds.calendars import CalendarKind, CalendarReference, Calendars
from crds.definitions import all_definitions
from crds.expansion import expanded
from crds.schedule import Schedule
from crds.schedulecalendar import CalendarSpec
from local import examples
from local.binaries import ensure
from local.cluster import Options
from local.demo import words
from local.demo.expectations import START, Expectation, ExpectationVerdict, expectations
from local.demo.observations import Chronicle, Observation
from local.demo.owner import HostOwner
from local.demo.screen import Screen, verdicts
from local.demo.watch import Watch
from local.errors import LocalError
from local.operator import NAMESPACE, ClockPace, Operator
from local.plane import DEMO_NAMESPACE, ControlPlane
from local.ports import ANY_PORTS
from local.processes import Keeper
from local.progress import Progress
from service import log
from service.clock import Clock
from service.commands.reports import tables
from service.console.local import serving
from service.console.viewer import ViewPlace
from service.fleet.usage import ReportPeriod, report_of
from service.kube.decode import Object
from service.kube.errors import KubeError
from service.kube.resource import SCHEDULED_MACHINES

REFRESH_SECONDS = 0.25
INTERRUPTED = 130
PLAIN_WIDTH = 100
INTRODUCTION = """
Seven ScheduledMachines live from a Friday morning to Saturday noon; an hour takes {hour:.3g} s.
  office-hours  working days from 09:00 to 18:00; two pods run on it, which have to leave
  reading-room  from 09:00, too, but the Cluster lets one machine come at a time
  workstation   working days from 10:00 to 17:00; at 14:00 its owner starts an IDE: a real process here
  night-shift   22:00 to 06:00, on a Node with taints
  weekend       of a class, by cron: Saturday at 07:00 for four hours; an override adds an hour
  broken-host   working days from 12:00 to 20:00, but its provider refuses its configuration
  classroom     school days from 08:30 to 16:15, but its calendar says that this Friday is a holiday
"""


@dataclass(frozen=True, slots=True)
class Show:
    """A demo under way."""

    plane: ControlPlane
    clock: Clock
    speed: float
    expected: tuple[Expectation, ...]
    console: Console
    once: bool
    owner: HostOwner
    chronicle: Chronicle = field(default_factory=Chronicle)
    machines: list[Object] = field(default_factory=list)
    """As they were at the end, for the report."""

    async def play(self) -> None:
        """Runs until everything has happened, or until Ctrl-C; the console is live meanwhile."""
        async with (
            self.plane.management.client() as management,
            self.plane.workload.client() as workload,
            serving(ViewPlace(self.plane.management.client(), self.clock, None, NAMESPACE)) as entrance,
        ):
            watch = Watch(management, workload, self.clock, self.chronicle, self.owner.manifest())
            watching = asyncio.create_task(watch.run())
            try:
                await self._follow(watch, watching, entrance.address)
            finally:
                with suppress(KubeError):
                    self.machines.extend(await management.list(SCHEDULED_MACHINES, namespace=DEMO_NAMESPACE))
                watching.cancel()
                with suppress(asyncio.CancelledError):
                    await watching

    async def _follow(self, watch: Watch, watching: "asyncio.Task[None]", address: str) -> None:
        with ExitStack() as stack:
            draw = self._view(stack, address)
            while not (self.once and self.decided()):
                if watching.done():
                    await watching
                await watch.tend_pods()
                await self.owner.tend(watch.workload, self.chronicle, self.clock.now())
                draw()
                watch.news.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(REFRESH_SECONDS):
                        await watch.news.wait()
            draw()

    def decided(self) -> bool:
        """Whether every expectation is met or missed."""
        now = self.clock.now()
        return all(each.verdict(self.chronicle, now) is not ExpectationVerdict.WAITING for each in self.expected)

    def summarise(self) -> int:
        """Prints the report, what was expected and what happened; returns how much went wrong or was not waited for."""
        self._report()
        rows = words.summary(self.expected, self.chronicle, self.clock.now())
        self.console.print()
        self.console.print(verdicts("What was expected, and what happened", rows))
        met, waiting = (
            sum(each is verdict for *_, each in rows)
            for verdict in (ExpectationVerdict.MET, ExpectationVerdict.WAITING)
        )
        rest = f", {waiting} were not waited for" if waiting else ""
        self._print(f"\n{met} of {len(rows)} things happened as expected{rest}.")
        self._print("All of it was real Kubernetes and Cluster API; only the hosts were simulated.")
        return len(rows) - met

    def _report(self) -> None:
        """What `5spot report` says of the demo."""
        if not self.machines:
            return
        raws = [{**raw, "metadata": raw["metadata"] | {"creationTimestamp": rfc3339(START)}} for raw in self.machines]
        self._print("\nWhat 5spot report says")
        for part in tables(report_of(raws, ReportPeriod(START, self.clock.now()))):
            self.console.print(part)
        self._print(
            f"\nOn this clock a minute takes {60 / self.speed:.2g} s: no host is Ready so soon after its opening."
        )

    def _view(self, stack: ExitStack, address: str) -> Callable[[], None]:
        if not self.console.is_interactive:
            self.chronicle.listeners.append(self._tell)
            self._print(INTRODUCTION.format(hour=3600 / self.speed))
            self._print(f"Console, for one browser: {address}\n")
            return lambda: None
        screen = Screen(self.expected, schedules(), self.speed, address)
        live = stack.enter_context(Live(console=self.console, screen=True, auto_refresh=False))

        def draw() -> None:
            size = self.console.size
            live.update(screen.frame(self.chronicle, self.clock.now(), size.width, size.height), refresh=True)

        return draw

    def _tell(self, now: Observation, before: Observation | None) -> None:
        if line := words.change(now, before):
            self._print(f"{words.moment(now.at)}  {line}")

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)
        self.console.file.flush()


def show(speed: float, *, once: bool) -> int:
    """Runs the demo from beginning to end; the exit code says whether everything happened."""
    progress = Progress()
    assets = ensure(progress)
    log.configure("critical")  # the screen is for the demo
    with ExitStack() as stack:
        keeper = stack.enter_context(Keeper())
        with progress.step("starting two clusters, Cluster API and simulated hosts"):
            options = Options(definitions=all_definitions())
            plane = stack.enter_context(ControlPlane(assets, keeper, options))
        with progress.step("starting the operator"):
            operator = stack.enter_context(Operator.start(plane.management, keeper, ClockPace(START, speed), ANY_PORTS))
        owner = HostOwner(plane.workload, assets.kubectl, keeper)
        owner.install()
        return _play(Show(plane, operator.clock(), speed, tuple(expectations()), console(), once, owner))


def console() -> Console:
    """As wide as the terminal; a file is wide enough for the summary, and stays one whatever FORCE_COLOR says."""
    shown = sys.stdout.isatty()
    return Console(file=sys.stdout, force_terminal=shown, width=None if shown else PLAIN_WIDTH)


def schedules() -> dict[str, Schedule]:
    """The examples' schedules, to draw their windows."""
    found = {}
    for name in examples.ALL:
        written = rules.check(examples.load(name)).written
        schedule = written.schedule.resolved(_calendars()) if written else None
        if not isinstance(schedule, Schedule):
            raise LocalError(f"{examples.path(name)} is not valid")
        found[name] = schedule
    return found


def _calendars() -> Calendars:
    spec = CalendarSpec.parse(examples.load(examples.CALENDAR)["spec"])
    return {CalendarReference(CalendarKind.NAMESPACED, examples.CALENDAR): expanded(spec)}


def _play(demo: Show) -> int:
    try:
        asyncio.run(demo.play())
    except KeyboardInterrupt:
        demo.summarise()
        return INTERRUPTED if demo.once else 0
    return 1 if demo.summarise() else 0
