"""`5spot release`: takes the operator's finalizer off ScheduledMachines, for a platform team that uninstalls."""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from crds import names
from service.commands import cluster

if TYPE_CHECKING:  # at run time these come late: `--help` should not wait for them
    from service.kube.client import Client
    from service.runtime.key import Key
    from service.uninstall import Found, Hold, Holds, Machine

DONE: Final = 0
NOT_DONE: Final = 1
NOT_ASKED_WELL: Final = 2

DESCRIPTION: Final = f"""\
Takes the finalizer {names.FINALIZER} off ScheduledMachines, so that they can be deleted when no operator
runs any more. Nothing else is changed: the ScheduledMachines stay, finalizers of others stay, and so do Machines, which
are named, because nobody removes them afterwards.

Stop the operator first. While one is alive, which its leases tell, it is refused: the operator would put the finalizer
back, or remove machines on its own."""
EPILOG: Final = """\
Exit code 0: done; 1: refused, or something could not be released; 2: wrong arguments, or not confirmed.

examples:
  5spot release --dry-run              what would be done in the whole cluster
  5spot release --yes                  release everything
  5spot release -n team-a              one namespace, after a question
  5spot release team-a/worker --yes    one object"""


class NotAskedWellError(ValueError):
    """The arguments do not say what to do; the message says what is missing."""


def register(subparsers: Any) -> None:
    """Add the command to the `5spot` parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "release",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("names", nargs="*", metavar="[NAMESPACE/]NAME", help="these only; default: all there are")
    parser.add_argument("-n", "--namespace", help="only in this namespace; default: all namespaces")
    parser.add_argument("--dry-run", action="store_true", help="ask the API server, change nothing")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--force", action="store_true", help="release even while an operator is alive")
    parser.add_argument(
        "--operator-namespace", metavar="NAMESPACE", help="where to look for operators; default: everywhere"
    )
    cluster.add_flags(parser)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: text")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Finds, asks, releases and tells."""
    try:
        return asyncio.run(_run(arguments))
    except NotAskedWellError as error:
        _say(str(error))
        return NOT_ASKED_WELL


async def _run(arguments: argparse.Namespace) -> int:
    from service.kube.errors import NotFound  # noqa: PLC0415 - `--help` should not wait for it
    from service.uninstall import find  # noqa: PLC0415

    wanted = _wanted(arguments.names, arguments.namespace)
    async with await cluster.connect(arguments) as client:
        seen = None if arguments.force else await _leases(client, arguments.operator_namespace)
        if seen and not await _operators_are_gone(client, arguments.operator_namespace, seen):
            return NOT_DONE
        try:
            found = await find(client, namespace=arguments.namespace, wanted=wanted)
        except NotFound:
            _say(f"this cluster does not know {names.KIND}s: there is nothing to release")
            return DONE
        if not _confirmed(arguments, found):
            return NOT_ASKED_WELL
        done = await _release(client, found, arguments)
        if seen is not None and await _somebody_came(client, arguments.operator_namespace, seen):
            return NOT_DONE
    return NOT_DONE if any(each.outcome in {"failed", "missing"} for each in done) else DONE


async def _release(client: "Client", found: "Sequence[Found]", arguments: argparse.Namespace) -> "Sequence[Found]":
    from service.uninstall import release  # noqa: PLC0415 - see above

    dry_run = arguments.dry_run
    if arguments.output == "json":
        done = await release(client, found, dry_run=dry_run, told=lambda _each: None)
        _print(json.dumps([_as_json(each) for each in done], indent=2))
        return done
    done = await release(client, found, dry_run=dry_run, told=lambda each: _print(_line(each, dry_run=dry_run)))
    _print(_summary(done, dry_run=dry_run))
    return done


def _wanted(given: Sequence[str], namespace: str | None) -> "list[Key]":
    from service.runtime.key import Key  # noqa: PLC0415 - see above

    keys = []
    for each in given:
        own, slash, name = each.rpartition("/")
        if not name or "/" in own or (slash and not own):
            raise NotAskedWellError(f"{each!r} is not a name, nor a namespace and a name with a / between them")
        if slash and namespace not in {None, own}:
            raise NotAskedWellError(f"{each} is not in the namespace {namespace} that -n names")
        if not slash and namespace is None:
            raise NotAskedWellError(f"in which namespace is {each}? Write NAMESPACE/{each}, or give -n NAMESPACE")
        keys.append(Key(own or str(namespace), name))
    return keys


async def _leases(client: "Client", namespace: str | None) -> "Holds":
    from service.kube.errors import Forbidden  # noqa: PLC0415 - see above
    from service.uninstall import holds  # noqa: PLC0415

    try:
        return await holds(client, namespace)
    except Forbidden as error:
        raise NotAskedWellError(
            f"whether an operator is alive cannot be seen: {error.message}. Say where it ran with "
            "--operator-namespace, or give --force if you know that none runs"
        ) from error


async def _operators_are_gone(client: "Client", namespace: str | None, seen: "Holds") -> bool:
    from service.uninstall import alive  # noqa: PLC0415 - see above

    patience = max(hold.seconds for hold in seen.values())
    _say(f"waiting up to {patience:.0f} s to see whether {_several(seen.values())} is alive")
    living = await alive(client, namespace, seen)
    if living:
        where = ", ".join(sorted({hold.lease.namespace for hold in living}))
        _say(
            f"an operator is alive: {_several(living)} in namespace {where} renews its lease. Stop it first "
            "(scale it to 0 or uninstall it), or give --force"
        )
    return not living


async def _somebody_came(client: "Client", namespace: str | None, seen: "Holds") -> bool:
    from service.uninstall import holds, signs_of_life  # noqa: PLC0415 - see above

    came = signs_of_life(seen, await holds(client, namespace))
    if came:
        _say(f"an operator has started meanwhile, {_several(came)}, and may have put finalizers back: stop it, repeat")
    return bool(came)


def _several(holds: "Iterable[Hold]") -> str:
    return ", ".join(sorted({hold.holder for hold in holds}))


def _confirmed(arguments: argparse.Namespace, found: "Sequence[Found]") -> bool:
    held = [each for each in found if each.outcome == "held"]
    if arguments.yes or arguments.dry_run or not held:
        return True
    if not sys.stdin.isatty():
        _say(f"nothing was done: confirm with --yes that {len(held)} are to be released, or look with --dry-run")
        return False
    for each in held:
        _say(_line(each, dry_run=True))
    sys.stderr.write(f"Release {len(held)} ScheduledMachines? Type yes: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() == "yes":
        return True
    _say("nothing was done")
    return False


def _line(each: "Found", *, dry_run: bool) -> str:
    match each.outcome:
        case "released" | "held":
            facts = ["would be released" if dry_run else "released", *_waits(each), *_left_behind(each)]
        case "free":
            facts = ["does not carry our finalizer", *_left_behind(each)]
        case "gone" | "missing":
            facts = [each.error]
        case _:
            facts = [f"NOT released: {each.error}", *_hint(each.error)]
    return f"{each.key}: {'; '.join(facts)}"


def _waits(each: "Found") -> list[str]:
    if not each.deleting:
        return []
    others = ", ".join(each.others)
    return [f"its deletion still waits for {others}" if others else "its deletion is completed"]


def _left_behind(each: "Found") -> list[str]:
    return [_left(one, each.key.namespace) for one in each.left_behind]


def _left(one: "Machine", namespace: str) -> str:
    if one.kind != "Machine":
        return f"{one.kind} {one.name} goes when the ScheduledMachine is deleted"
    if one.leaving:
        return f"Machine {one.name} is being removed by Cluster API"
    by_hand = f"kubectl delete machines.{names.CAPI_GROUP} -n {namespace} {one.name}"
    return f"Machine {one.name} stays, and nobody removes it any more ({by_hand})"


def _hint(error: str) -> list[str]:
    if "failed calling webhook" in error:
        return ["delete the webhook configurations of the operator first, nobody answers them any more"]
    return []


def _summary(done: "Sequence[Found]", *, dry_run: bool) -> str:
    if not done:
        return f"no {names.KIND} carries our finalizer"
    released = sum(each.outcome == "released" for each in done)
    stay = sum(one.kind == "Machine" and not one.leaving for each in done for one in each.left_behind)
    failed = sum(each.outcome == "failed" for each in done)
    parts = [f"{released} {'would be ' if dry_run else ''}released", f"{stay} Machines stay"]
    return ", ".join([*parts, *([f"{failed} NOT released"] if failed else [])])


def _as_json(each: "Found") -> dict[str, Any]:
    return {
        "namespace": each.key.namespace,
        "name": each.key.name,
        "outcome": str(each.outcome),
        "deleting": each.deleting,
        "otherFinalizers": list(each.others),
        "leftBehind": [{"kind": one.kind, "name": one.name, "leaving": one.leaving} for one in each.left_behind],
        **({"message": each.error} if each.error else {}),
    }


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _say(text: str) -> None:
    sys.stderr.write(f"5spot: {text}\n")
