"""Owns a control plane for `5spot local up`, in the foreground or, with `--detach`, as a process of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from crds import names
from crds.definitions import all_definitions
from local import pki, state
from local.binaries import Assets, ensure
from local.cluster import Options
from local.errors import LocalError
from local.operator import REAL_TIME, ClockPace, Operator
from local.plane import ControlPlane
from local.ports import ANY_PORTS, PortRange
from local.processes import Keeper
from local.progress import Progress
from local.state import LocalState
from service.cli import sentences

OnReady = Callable[[LocalState], None]


@dataclass(frozen=True, slots=True)
class UpRequest:
    """What the command line asked for."""

    kubeconfig: Path | None = None
    workload_kubeconfig: Path | None = None
    ports: PortRange = ANY_PORTS
    operator: ClockPace | None = REAL_TIME

    @property
    def files(self) -> tuple[Path, ...]:
        """What is written outside the control plane's own directory."""
        return tuple(path for path in (self.kubeconfig, self.workload_kubeconfig) if path is not None)

    def packed(self) -> str:
        """As one word for the command line of the process that is to do it."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def unpacked(cls, word: str) -> "UpRequest":
        """What `packed` made a word of."""
        given = json.loads(word)
        paths = {name: Path(given[name]) if given[name] else None for name in ("kubeconfig", "workload_kubeconfig")}
        return cls(**paths, ports=PortRange(**given["ports"]), operator=_pace(given["operator"]))


class Stopped(BaseException):
    """A signal asks the process to end; as with KeyboardInterrupt, code that handles errors does not catch it."""


def hold(request: UpRequest, on_ready: OnReady, progress: Progress) -> None:
    """Brings a control plane up and keeps it until SIGTERM or Ctrl-C; nothing of it is left afterwards."""
    with suppress(Stopped), stopped_by_signals(), held(request, progress) as ready:
        on_ready(ready)
        while True:
            signal.pause()


@contextmanager
def held(request: UpRequest, progress: Progress) -> Iterator[LocalState]:
    """A control plane within the block, registered as the user's one."""
    refuse_to_overwrite(request.files)
    assets = ensure(progress)
    with state.register(state.path()) as registration, ExitStack() as stack:
        registration.record(_starting())
        keeper = stack.enter_context(Keeper([registration.path]))
        with progress.step("starting the control plane"):
            options = Options(ports=request.ports, definitions=all_definitions())
            plane = stack.enter_context(ControlPlane(assets, keeper, options))
        operator = _operator(request, plane, keeper, progress)
        if operator is not None:
            stack.enter_context(operator)
        _write_kubeconfigs(request, plane, keeper, operator)
        ready = _described(request, plane, assets, operator)
        registration.record(ready)
        yield ready


def refuse_to_overwrite(files: Sequence[Path]) -> None:
    """Refuses to overwrite a kubeconfig: it may lead to a real cluster. An empty file, as mktemp makes, is fine."""
    if len(set(files)) < len(files):
        raise LocalError(f"{files[0]} cannot hold the kubeconfigs of both clusters: name two files")
    for path in files:
        if path.exists() and not (path.is_file() and path.stat().st_size == 0):
            raise LocalError(f"{path} exists already and is left alone: remove it, or name another file")
        if not path.parent.is_dir():
            raise LocalError(f"{path} cannot be written: there is no folder {path.parent}")
        if not os.access(path.parent, os.W_OK):
            raise LocalError(f"{path} cannot be written: the folder {path.parent} may not be written to")


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP raise `Stopped` within the block."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, _stop) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def detached(request: UpRequest, progress: Progress) -> LocalState:
    """Has another process hold the control plane; returns when it is ready."""
    refuse_to_overwrite(request.files)
    ensure(progress)
    # -P: the folder that the user happens to be in may have a `local` or `service` of its own.
    argv = [sys.executable, "-P", "-m", "local.up", request.packed()]
    what = "the control plane and the operator" if request.operator else "the control plane"
    with progress.step(f"starting {what}"):
        owner = subprocess.Popen(  # noqa: S603 -- this very module
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        )
        answer = hear(owner)
        if "error" in answer:
            raise LocalError(answer["error"])
    return LocalState(**answer)


def hear(owner: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """What the detached owner says of how it went."""
    try:
        said = owner.stdout.read() if owner.stdout else b""
    except BaseException:
        owner.terminate()
        owner.wait()
        raise
    if not said:
        return {"error": _unsaid(owner.wait())}
    answer: dict[str, Any] = json.loads(said)
    return answer


def _unsaid(code: int) -> str:
    if code == 0:  # it was asked to
        return "the control plane was stopped before it was ready"
    return f"the process that should hold the control plane ended with code {code}"


def main(argv: Sequence[str]) -> int:
    """The detached owner: says once how it went, then lets go of the terminal."""
    (word,) = argv
    request = UpRequest.unpacked(word)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        try:
            hold(request, lambda ready: _tell(state.to_dict(ready)), Progress(nowhere))
        except Exception as error:  # noqa: BLE001 -- the outermost border; the waiting process prints a sentence
            _tell({"error": str(error) if isinstance(error, LocalError) else "; ".join(sentences(error))})
            return 1
    return 0


def _tell(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _operator(request: UpRequest, plane: ControlPlane, keeper: Keeper, progress: Progress) -> Operator | None:
    if request.operator is None:
        return None
    with progress.step("starting the operator"):
        return Operator.start(plane.management, keeper, request.operator, request.ports)


def _write_kubeconfigs(request: UpRequest, plane: ControlPlane, keeper: Keeper, operator: Operator | None) -> None:
    management, workload = plane.management.access.kubeconfig(extensions=_clock(operator)), plane.workload.access
    wanted = {request.kubeconfig: management, request.workload_kubeconfig: workload.kubeconfig()}
    files = {path: text for path, text in wanted.items() if path is not None}
    keeper.takes_back(files)  # first: a process killed in between must not leave a kubeconfig of a cluster that is gone
    for path, text in {**files, plane.management.kubeconfig: management}.items():
        pki.write_private(path, text)


def _clock(operator: Operator | None) -> dict[str, Any]:
    """The clock that schedules follow, if it is not the real one, for the commands that show machines."""
    if operator is None or not operator.pace.simulated:
        return {}
    return {names.CLOCK_EXTENSION: operator.clock().to_json()}


def _described(request: UpRequest, plane: ControlPlane, assets: Assets, operator: Operator | None) -> LocalState:
    servers = (*plane.servers, *((operator.server,) if operator else ()))
    return LocalState(
        owner=os.getpid(),
        started=_now(),
        ready=True,
        kubeconfig=str(request.kubeconfig or plane.management.kubeconfig),
        workload_kubeconfig=str(request.workload_kubeconfig or plane.workload.kubeconfig),
        kubectl=str(assets.kubectl),
        logs=str(plane.management.apiserver.log.parent),
        clusters={cluster.name: cluster.url for cluster in (plane.management, plane.workload)},
        operator=operator.described() if operator else {},
        processes={server.name: server.pid or 0 for server in servers},
    )


def _pace(given: dict[str, Any] | None) -> ClockPace | None:
    if given is None:
        return None
    return ClockPace(datetime.fromisoformat(given["at"]) if given["at"] else None, given["speed"])


def _starting() -> LocalState:
    return LocalState(owner=os.getpid(), started=_now())


def _now() -> str:
    return datetime.now().astimezone().isoformat(" ", "seconds")


def _stop(*_: object) -> NoReturn:
    raise Stopped


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
