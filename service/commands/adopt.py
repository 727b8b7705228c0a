"""`5spot adopt`: gives a ScheduledMachine that was restored from a backup its Machine and provider objects back."""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from crds import names
from service.commands import cluster

if TYPE_CHECKING:  # at run time it comes late: `--help` should not wait for it
    from service.adoption import Found

DONE: Final = 0
NOT_DONE: Final = 1
ASKED_WRONGLY: Final = 2
DESCRIPTION: Final = f"""\
After a restore, objects have new uids, and the operator does not know the Machine that it made before: it reports
ForeignObject and touches nothing. This command makes the Machine and the provider objects of a ScheduledMachine its own
again, by an owner reference, after which the operator carries on with them. An object is taken over only if it carries
the labels {names.LABEL_OWNER}={{NAME}} and {names.LABEL_MANAGED_BY}={names.MANAGED_BY}, is not being deleted, has no
other controller, and is not another ScheduledMachine's."""
EPILOG: Final = """\
Exit code 0: done, or nothing was to be done; 1: an object may not be taken over, or could not; 2: wrong arguments.

examples:
  5spot adopt desk-7 -n team-a             one ScheduledMachine
  5spot adopt --all -n team-a --dry-run    what would be taken over in a namespace
  5spot adopt --all -A                     in the whole cluster"""

Raw = dict[str, Any]


class AskedWronglyError(ValueError):
    """The arguments do not say what to adopt; the message says what is missing."""


def register(subparsers: Any) -> None:
    """Add the command to the `5spot` parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "adopt",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="ScheduledMachines whose objects are to be taken over")
    parser.add_argument("--all", action="store_true", help="all ScheduledMachines of the namespace")
    parser.add_argument("-n", "--namespace", help="default: the context's")
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="with --all: in every namespace")
    parser.add_argument("--dry-run", action="store_true", help="say what would be taken over, change nothing")
    cluster.add_flags(parser)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: text")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Take over what may be, and say what became of each object."""
    if bool(arguments.names) == arguments.all or (arguments.all_namespaces and not arguments.all):
        sys.stderr.write("5spot: name ScheduledMachines, or give --all, with -n NAMESPACE or -A\n")
        return ASKED_WRONGLY
    try:
        found = asyncio.run(_adopt(arguments))
    except AskedWronglyError as error:
        sys.stderr.write(f"5spot: {error}\n")
        return NOT_DONE
    if arguments.output == "json":
        sys.stdout.write(f"{json.dumps([each.to_json() for each in found], indent=2)}\n")
    else:
        sys.stdout.write("".join(f"{each}\n" for each in found) or "there is nothing to adopt\n")
    return NOT_DONE if any(each.failed for each in found) else DONE


async def _adopt(arguments: argparse.Namespace) -> "list[Found]":
    from service.adoption import Adopter  # noqa: PLC0415 - `--help` should not wait for it
    from service.kube.discovery import Discovery  # noqa: PLC0415
    from service.kube.errors import NotFound  # noqa: PLC0415
    from service.kube.resource import SCHEDULED_MACHINES  # noqa: PLC0415

    namespace = None if arguments.all_namespaces else arguments.namespace or cluster.default_namespace(arguments)
    async with await cluster.connect(arguments) as client:
        try:
            listed = await client.list(SCHEDULED_MACHINES, namespace=namespace)
        except NotFound as error:
            raise AskedWronglyError(f"this cluster does not know {names.KIND}s: {error.message}") from None
        living = {each["metadata"]["uid"] for each in listed}
        adopter = Adopter(client, Discovery(client), living, dry_run=arguments.dry_run)
        return [found for raw in _wanted(listed, arguments) for found in await adopter.adopt(raw)]


def _wanted(listed: list[Raw], arguments: argparse.Namespace) -> Iterator[Raw]:
    known = {each["metadata"]["name"]: each for each in listed}
    missing = [name for name in arguments.names if name not in known]
    if missing:
        raise AskedWronglyError(f"there is no {names.KIND} {missing[0]} in this namespace; -n names another")
    yield from listed if arguments.all else (known[name] for name in dict.fromkeys(arguments.names))
