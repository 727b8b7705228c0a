"""The steps of `5spot release`: make sure that no operator runs, find, ask the user, remove finalizers, report."""

import json
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import typer

from crds import names
from service.commands import cluster, finalizers, operators
from service.commands.finalizers import Name, ReleaseOutcome, ReleaseTarget, RemainingMachine
from service.commands.operators import Holder, Holders
from service.commands.options import ClusterChoice
from service.commands.table import FAILED, PROGRAM, WRONG_USAGE, UsageError
from service.kube.client import Client
from service.kube.errors import Forbidden, NotFound


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """What the command line asks for."""

    wanted: Sequence[Name]
    namespace: str | None
    operator_namespace: str | None
    dry_run: bool
    confirmed: bool
    force: bool
    output: str


async def uninstall(request: ReleaseRequest, access: ClusterChoice) -> int:
    """Runs all steps and returns the exit code."""
    async with await cluster.connect(access) as client:
        seen = None if request.force else await _holders(client, request.operator_namespace)
        if seen and await _operator_runs(client, request.operator_namespace, seen):
            return FAILED
        try:
            found = await finalizers.find(client, namespace=request.namespace, wanted=request.wanted)
        except NotFound:
            _say(f"this cluster has no {names.KIND}s: there is nothing to release")
            return 0
        if not _confirmed(request, found):
            return WRONG_USAGE
        done = await _release(client, found, request)
        if seen is not None and await _operator_started(client, request.operator_namespace, seen):
            return FAILED
    return FAILED if any(each.outcome is ReleaseOutcome.FAILED for each in done) else 0


def parsed(given: Sequence[str], namespace: str | None) -> list[Name]:
    """The namespaces and names that `[NAMESPACE/]NAME` arguments stand for."""
    return [_parsed(each, namespace) for each in given]


def _parsed(given: str, namespace: str | None) -> Name:
    own, slash, name = given.rpartition("/")
    if not name or "/" in own or (slash and not own):
        raise UsageError(f"{given!r} is not a name; write NAME or NAMESPACE/NAME")
    if slash and namespace not in {None, own}:
        raise UsageError(f"{given} is not in the namespace {namespace} that -n names")
    if not slash and namespace is None:
        raise UsageError(f"in which namespace is {given}? Write NAMESPACE/{given}, or give -n NAMESPACE")
    return own or str(namespace), name


async def _holders(client: Client, namespace: str | None) -> Holders:
    try:
        return await operators.holders(client, namespace)
    except Forbidden as error:
        raise UsageError(
            f"cannot see whether an operator is running: {error.message}. Say where it ran with "
            "--operator-namespace, or give --force if you know that none is running"
        ) from error


async def _operator_runs(client: Client, namespace: str | None, seen: Holders) -> bool:
    longest = max(holder.seconds for holder in seen.values())
    _say(f"waiting up to {longest:.0f} s to see whether {_identities(seen.values())} is running")
    running = await operators.running(client, namespace, seen)
    if running:
        where = ", ".join(sorted({holder.lease[0] for holder in running}))
        _say(
            f"an operator is running: {_identities(running)} in namespace {where} renews its lease. Stop it first "
            "(scale it to 0 or uninstall it), or give --force"
        )
    return bool(running)


async def _operator_started(client: Client, namespace: str | None, seen: Holders) -> bool:
    started = operators.newly_renewed(seen, await operators.holders(client, namespace))
    if started:
        _say(
            f"an operator started in the meantime, {_identities(started)}, and may have added finalizers again: "
            "stop it and repeat this command"
        )
    return bool(started)


def _identities(holders: Collection[Holder]) -> str:
    return ", ".join(sorted({holder.identity for holder in holders}))


def _confirmed(request: ReleaseRequest, found: Sequence[ReleaseTarget]) -> bool:
    held = [each for each in found if each.outcome is ReleaseOutcome.HELD]
    if request.confirmed or request.dry_run or not held:
        return True
    if not sys.stdin.isatty():
        _say(f"nothing was changed: confirm with --yes to release {len(held)}, or look first with --dry-run")
        return False
    for each in held:
        _say(line(each, dry_run=True))
    sys.stderr.write(f"Release {len(held)} ScheduledMachines? Type yes: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() == "yes":
        return True
    _say("nothing was changed")
    return False


async def _release(client: Client, found: Sequence[ReleaseTarget], request: ReleaseRequest) -> list[ReleaseTarget]:
    done = []
    async for each in finalizers.release(client, found, dry_run=request.dry_run):
        done.append(each)
        if request.output == "text":
            typer.echo(line(each, dry_run=request.dry_run))
    if request.output == "json":
        typer.echo(json.dumps([each.to_json() for each in done], indent=2))
    else:
        typer.echo(_summary(done, dry_run=request.dry_run))
    return done


def line(each: ReleaseTarget, *, dry_run: bool) -> str:
    """One object, for people."""
    return f"{'/'.join(each.name)}: {'; '.join(_facts(each, dry_run=dry_run))}"


def _facts(each: ReleaseTarget, *, dry_run: bool) -> Iterator[str]:
    match each.outcome:
        case ReleaseOutcome.GONE:
            yield "was deleted in the meantime"
            return
        case ReleaseOutcome.FAILED:
            yield f"NOT released: {each.error}"
            if "failed calling webhook" in each.error:
                yield "delete the webhook configurations of the operator first, it no longer answers"
            return
        case ReleaseOutcome.FREE:
            yield "does not carry our finalizer"
        case ReleaseOutcome.RELEASED | ReleaseOutcome.HELD:
            yield "would be released" if dry_run else "released"
            yield from _deletion(each)
    if each.machine:
        yield _left(each.machine, each.name[0])


def _deletion(each: ReleaseTarget) -> Iterator[str]:
    if each.deleting and each.others:
        yield f"its deletion still waits for {', '.join(each.others)}"
    elif each.deleting:
        yield "its deletion is completed"


def _left(machine: RemainingMachine, namespace: str) -> str:
    if machine.leaving:
        return f"Cluster API is deleting Machine {machine.name}"
    command = f"kubectl delete machines.{names.CAPI_GROUP} -n {namespace} {machine.name}"
    return f"Machine {machine.name} stays until you delete it ({command})"


def _summary(done: Sequence[ReleaseTarget], *, dry_run: bool) -> str:
    if not done:
        return f"no {names.KIND} carries our finalizer"
    released = sum(each.outcome is ReleaseOutcome.RELEASED for each in done)
    stay = sum(each.machine is not None and not each.machine.leaving for each in done)
    failed = sum(each.outcome is ReleaseOutcome.FAILED for each in done)
    parts = [f"{released} {'would be ' if dry_run else ''}released", f"{stay} Machines stay"]
    if failed:
        parts.append(f"{failed} NOT released")
    return ", ".join(parts)


def _say(text: str) -> None:
    typer.echo(f"{PROGRAM}: {text}", err=True)
