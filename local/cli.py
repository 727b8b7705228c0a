"""The command `5spot local`: starts, shows and stops a throw-away control plane on this machine."""

import argparse
import os
import select
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from local import examples, state
from local.arguments import instant, speed
from local.errors import LocalError
from local.keeper import group_of
from local.ports import ANY_PORTS, PortRange
from local.state import LocalState

DOWN_SECONDS = 60
INTERRUPTED = 130
UP = """\
Starts two real Kubernetes clusters on loopback: a management cluster with Cluster API and a simulated provider of
hosts, and a workload cluster for their Nodes. A Cluster `demo` in namespace `default` is ready to use. The CRD and the
webhooks are installed, and the operator runs, if you like on a clock of its own. Everything stays until Ctrl-C and
leaves nothing behind. The first start builds the programs, which takes several minutes."""
TROUBLE = """\
Hosts do as told by `spec.simulate` of a K0sWorkerConfig or RemoteMachine: `delaySeconds: N` makes them late, `failure:
InvalidConfiguration | NeverReady | NodeNeverJoins` makes them fail. RemoteMachines with one `spec.address` are one
host."""

ENV = """\
Prints lines for a shell: `eval "$(5spot local env)"` makes kubectl speak to the management cluster, and with `--context
workload` to the workload cluster. Where there is no kubectl, the one that was built is put on the PATH."""

DOWN = """\
Stops the control plane that `up` started. The kubeconfigs that it wrote go along, but for one that was changed
since."""


def register(subparsers: Any) -> None:
    """Adds `local` with its subcommands."""
    parser = subparsers.add_parser("local", help="a throw-away control plane", description=__doc__)
    commands = parser.add_subparsers(dest="local_command", metavar="COMMAND", required=True, title="commands")
    up = commands.add_parser("up", help="start it", description=UP, epilog=TROUBLE)
    up.add_argument("--kubeconfig", type=Path, metavar="PATH", help="write the management cluster's kubeconfig here")
    up.add_argument(
        "--workload-kubeconfig", type=Path, metavar="PATH", help="write the workload cluster's kubeconfig here"
    )
    up.add_argument("--detach", action="store_true", help="return when all is ready, and let it run")
    up.add_argument(
        "--ports",
        type=_ports,
        metavar="FIRST-LAST",
        default=ANY_PORTS,
        help=f"take ports from this range (default: {ANY_PORTS.first}-{ANY_PORTS.last})",
    )
    _add_operator(up)
    up.set_defaults(run=_guarded(_up), usage_error=up.error)
    env = commands.add_parser("env", help="print what a shell needs to use kubectl on it", description=ENV)
    env.set_defaults(run=_guarded(_env))
    status = commands.add_parser(
        "status", help="show what runs where", description="Shows what runs where; exit code 3 if nothing does."
    )
    status.set_defaults(run=_guarded(_status))
    down = commands.add_parser("down", help="stop it", description=DOWN)
    down.set_defaults(run=_guarded(_down))


def _add_operator(up: argparse.ArgumentParser) -> None:
    up.add_argument(
        "--no-operator", action="store_true", help="only the clusters and the CRD; run the operator yourself, or not"
    )
    up.add_argument(
        "--at", type=instant, metavar="TIME", help="start the operator's clock at this time: 2026-03-06T08:55:00Z"
    )
    up.add_argument(
        "--speed",
        type=speed,
        metavar="N",
        help="let the operator's clock run N times as fast: 60 makes an hour a minute",
    )


def run(args: argparse.Namespace) -> int:
    """Runs the chosen subcommand."""
    code: int = args.run(args)
    return code


def _up(args: argparse.Namespace) -> int:
    # Only now: --help should not wait for the libraries that this pulls in.
    from local import up  # noqa: PLC0415
    from local.operator import ClockPace  # noqa: PLC0415
    from local.progress import Progress  # noqa: PLC0415

    if args.no_operator and (args.at or args.speed):
        args.usage_error("--at and --speed set the operator's clock and make no sense with --no-operator")
    pace = None if args.no_operator else ClockPace(args.at, args.speed or 1.0)
    request = up.UpRequest(_absolute(args.kubeconfig), _absolute(args.workload_kubeconfig), args.ports, pace)
    _refuse_second()
    if args.detach:
        _show(up.detached(request, Progress()), f"Stop it with: {_me()} local down")
        return 0
    try:
        up.hold(request, lambda ready: _show(ready, "Stop it with Ctrl-C."), Progress())
    except KeyboardInterrupt:
        print(_farewell(request.files), file=sys.stderr)
        return INTERRUPTED
    return 0


def _status(_: argparse.Namespace) -> int:
    found = state.running(state.path())
    if found is None:
        print("no control plane is running; `5spot local up` starts one")
        return 3
    if not found.ready:
        print(f"a control plane is being started by process {found.owner}, since {found.started}")
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
    from local.operator import told_time  # noqa: PLC0415

    told = told_time(operator["metrics"])
    print(f"\nThe operator says that it is {told:%A, %d %B %Y %H:%M:%S} UTC." if told else "\nThe operator is silent.")


def _env(_: argparse.Namespace) -> int:
    found = state.running(state.path())
    if found is None or not found.ready:
        raise LocalError("no control plane is ready; `5spot local up` starts one, `5spot local status` tells more")
    print(f"export KUBECONFIG={shlex.quote(f'{found.kubeconfig}:{found.workload_kubeconfig}')}")
    if shutil.which("kubectl") is None:
        print(f'export PATH={shlex.quote(str(Path(found.kubectl).parent))}:"$PATH"')
    return 0


def _down(_: argparse.Namespace) -> int:
    found = state.running(state.path())
    if found is None or not found.owner:
        print("no control plane is running")
        return 0
    owner = os.pidfd_open(found.owner)
    signal.pidfd_send_signal(owner, signal.SIGTERM)
    if not select.select([owner], [], [], DOWN_SECONDS)[0]:
        raise LocalError(f"process {found.owner}, which holds the control plane, did not end within {DOWN_SECONDS} s")
    print(_farewell((Path(found.kubeconfig), Path(found.workload_kubeconfig))))
    return 0


def _farewell(kubeconfigs: Iterable[Path]) -> str:
    left = [str(path) for path in kubeconfigs if path.is_file()]
    if not left:
        return "stopped; nothing is left behind"
    return f"stopped; left behind, as somebody has changed it since: {', '.join(left)}"


def _refuse_second() -> None:
    found = state.running(state.path())
    if found is not None:
        raise LocalError(state.already(found))


def _show(found: LocalState, stop: str) -> None:
    print(f"The control plane is ready; process {found.owner} holds it since {found.started}.\n")
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
    print(f"  {'operator':11} {operator['webhooks']}   webhooks, asked by the API server")
    print(f"  {'':11} {operator['health']}/ready, {operator['metrics']}/metrics")
    if "clock" in operator:
        print(f"  {'':11} its clock {operator['clock']}")


def _tries(found: LocalState) -> list[str]:
    """What to type next, after `kubectl`."""
    look = "get clusters,machines --all-namespaces"
    if not found.operator:
        return [look]
    return [f"apply -f {shlex.quote(_near(examples.path(examples.OFFICE)))}", "get sm -w", look]


def _me() -> str:
    """How this command was called, where its name alone would not find it."""
    called = Path(sys.argv[0])
    return "5spot" if shutil.which("5spot") or called.name != "5spot" else shlex.quote(_near(called.absolute()))


def _near(path: Path) -> str:
    """As seen from the current folder, if it is in it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _guarded(command: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    def guarded(args: argparse.Namespace) -> int:
        try:
            return command(args)
        except LocalError as error:  # its message may have several lines, such as the end of a log
            print(f"5spot: {error}", file=sys.stderr)
            return 1

    return guarded


def _ports(text: str) -> PortRange:
    try:
        return PortRange.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _absolute(path: Path | None) -> Path | None:
    return path.absolute() if path else None


def _alive(pid: int) -> bool:
    return group_of(pid) is not None
