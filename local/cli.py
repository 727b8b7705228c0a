"""The command `5spot local`: starts, shows and stops a throw-away control plane on this machine."""

import os
import select
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Annotated, Final

import typer

from local import descriptions, examples, state
from local.arguments import instant, speed
from local.errors import LocalError
from local.keeper import group_of
from local.ports import ANY_PORTS, PortRange
from local.state import LocalState
from service.commands.help import ReadableCommand, ReadableGroup, literal, paragraphs, show_help
from service.commands.table import FAILED, INTERRUPTED, UsageError

DOWN_SECONDS: Final = 60
NOT_RUNNING: Final = 3
OPERATOR: Final = "The operator"

app = typer.Typer(cls=ReadableGroup, add_completion=False, invoke_without_command=True, subcommand_metavar="COMMAND")


@app.callback(help=paragraphs(descriptions.LOCAL), epilog=literal(descriptions.LOCAL_EPILOG))
def local(context: typer.Context) -> None:
    """Show the help if no subcommand is named."""
    if context.invoked_subcommand is None:
        show_help(context)


def _guarded(command: Callable[..., int]) -> Callable[..., int]:
    """Prints a LocalError as it is: its message may have several lines, such as the end of a log."""

    @wraps(command)
    def guarded(**options: object) -> int:
        try:
            return command(**options)
        except LocalError as error:
            print(f"5spot: {error}", file=sys.stderr)
            return FAILED

    return guarded


def _command(name: str, summary: str, text: str, epilog: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    def register(command: Callable[..., int]) -> Callable[..., int]:
        how = app.command(name, cls=ReadableCommand, short_help=summary, help=paragraphs(text), epilog=epilog)
        return how(_guarded(command))

    return register


@_command("up", "Start the control plane.", descriptions.UP, descriptions.UP_EPILOG)
def start(  # noqa: PLR0913 - one parameter for each option
    *,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the management cluster's kubeconfig here.")
    ] = None,
    workload_kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the workload cluster's kubeconfig here.")
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return when everything is ready and keeps running.")
    ] = False,
    ports: Annotated[
        PortRange | None,
        typer.Option(
            metavar="FIRST-LAST",
            parser=PortRange.parse,
            help=f"Use ports of this range. Default: {ANY_PORTS.first}-{ANY_PORTS.last}.",
        ),
    ] = None,
    no_operator: Annotated[
        bool, typer.Option("--no-operator", help="Start no operator and no webhooks.", rich_help_panel=OPERATOR)
    ] = False,
    at: Annotated[
        datetime | None,
        typer.Option(
            metavar="TIME",
            parser=instant,
            help="Start the operator's clock at this time, such as 2026-03-06T08:55:00Z.",
            rich_help_panel=OPERATOR,
        ),
    ] = None,
    factor: Annotated[
        float | None,
        typer.Option(
            "--speed",
            metavar="N",
            parser=speed,
            help="Run the operator's clock N times as fast: 60 makes an hour a minute.",
            rich_help_panel=OPERATOR,
        ),
    ] = None,
) -> int:
    """Start the control plane, and hold it unless it is detached."""
    # Only now: help does not wait for these libraries.
    from local import up  # noqa: PLC0415
    from local.operator import ClockPace  # noqa: PLC0415
    from local.progress import Progress  # noqa: PLC0415

    if no_operator and (at or factor):
        raise UsageError("--at and --speed set the operator's clock and make no sense with --no-operator")
    pace = None if no_operator else ClockPace(at, factor or 1.0)
    request = up.UpRequest(_absolute(kubeconfig), _absolute(workload_kubeconfig), ports or ANY_PORTS, pace)
    _refuse_second()
    if detach:
        _show(up.detached(request, Progress()), f"Stop it with: {_me()} local down")
        return 0
    try:
        up.hold(request, lambda ready: _show(ready, "Stop it with Ctrl-C."), Progress())
    except KeyboardInterrupt:
        print(_farewell(request.files), file=sys.stderr)
        return INTERRUPTED
    return 0


@_command("status", "Show its programs and addresses.", descriptions.STATUS, descriptions.STATUS_EPILOG)
def status() -> int:
    """Show the programs of the control plane."""
    found = state.running(state.path())
    if found is None:
        print("no control plane is running; `5spot local up` starts one")
        return NOT_RUNNING
    if not found.ready:
        print(f"process {found.owner} is starting a control plane since {found.started}")
        return 0
    _show(found, f"Stop it with: {_me()} local down")
    print("\nprocesses")
    for name, pid in found.processes.items():
        print(f"  {name:30} {pid:>8}  {'running' if _alive(pid) else 'DEAD, see its log'}")
    _show_time(found.operator)
    return 0


def _show_time(operator: dict[str, str]) -> None:
    if not operator:
        return
    from local.operator import schedule_time  # noqa: PLC0415 - see above

    now = schedule_time(operator["metrics"])
    if now:
        print(f"\nThe operator's clock says {now:%A, %d %B %Y %H:%M:%S} UTC.")
    else:
        print("\nThe operator does not answer.")


@_command("env", "Print the variables that kubectl needs.", descriptions.ENV, descriptions.ENV_EPILOG)
def env() -> int:
    """Print shell commands."""
    found = state.running(state.path())
    if found is None or not found.ready:
        raise LocalError("no control plane is ready; `5spot local up` starts one, `5spot local status` shows more")
    print(f"export KUBECONFIG={shlex.quote(f'{found.kubeconfig}:{found.workload_kubeconfig}')}")
    if shutil.which("kubectl") is None:
        print(f'export PATH={shlex.quote(str(Path(found.kubectl).parent))}:"$PATH"')
    return 0


@_command("down", "Stop the control plane.", descriptions.DOWN, descriptions.DOWN_EPILOG)
def stop() -> int:
    """Stop the control plane."""
    found = state.running(state.path())
    if found is None or not found.owner:
        print("no control plane is running")
        return 0
    owner = os.pidfd_open(found.owner)
    signal.pidfd_send_signal(owner, signal.SIGTERM)
    if not select.select([owner], [], [], DOWN_SECONDS)[0]:
        raise LocalError(f"process {found.owner}, which runs the control plane, did not end within {DOWN_SECONDS} s")
    print(_farewell((Path(found.kubeconfig), Path(found.workload_kubeconfig))))
    return 0


def _farewell(kubeconfigs: Iterable[Path]) -> str:
    left = [str(path) for path in kubeconfigs if path.is_file()]
    if not left:
        return "stopped; nothing is left behind"
    return f"stopped; these files stay because they were changed: {', '.join(left)}"


def _refuse_second() -> None:
    found = state.running(state.path())
    if found is not None:
        raise LocalError(state.already(found))


def _show(found: LocalState, stop: str) -> None:
    print(f"The control plane is ready; process {found.owner} runs it since {found.started}.\n")
    for (name, url), config in zip(found.clusters.items(), (found.kubeconfig, found.workload_kubeconfig), strict=True):
        parts = [process.removeprefix(f"{name}-") for process in found.processes if process.startswith(f"{name}-")]
        print(f"  {name:11} {url}   {', '.join(parts)}")
        print(f"  {'':11} kubeconfig {config}")
    _show_operator(found.operator)
    print(f"  {'logs':11} {found.logs}\n")
    print(f'  eval "$({_me()} local env)"')
    for words in _tries(found):
        print(f"  kubectl {words}")
    print("  kubectl --context workload get nodes\n")
    print(stop, flush=True)


def _show_operator(operator: dict[str, str]) -> None:
    if not operator:
        print(f"  {'operator':11} not started")
        return
    print(f"  {'operator':11} {operator['webhooks']}   webhooks, called by the API server")
    print(f"  {'':11} {operator['health']}/ready, {operator['metrics']}/metrics")
    if "clock" in operator:
        print(f"  {'':11} its clock {operator['clock']}")


def _tries(found: LocalState) -> list[str]:
    """Commands to try next, after `kubectl`."""
    look = "get clusters,machines --all-namespaces"
    if not found.operator:
        return [look]
    return [f"apply -f {shlex.quote(_near(examples.path(examples.OFFICE)))}", "get sm -w", look]


def _me() -> str:
    """How to call this program: by its name if that is on the PATH, else by its path."""
    called = Path(sys.argv[0])
    return "5spot" if shutil.which("5spot") or called.name != "5spot" else shlex.quote(_near(called.absolute()))


def _near(path: Path) -> str:
    """Relative to the current folder, if it is inside it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _absolute(path: Path | None) -> Path | None:
    return path.absolute() if path else None


def _alive(pid: int) -> bool:
    return group_of(pid) is not None
