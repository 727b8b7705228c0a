"""The subcommands of `5spot`, their exit codes, and the error that wrong usage raises; known to all commands."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

PROGRAM: Final = "5spot"
DEBUG_VARIABLE: Final = "FIVESPOT_DEBUG"
COMPLETE_VARIABLE: Final = "_5SPOT_COMPLETE"
"""A shell sets it to ask for completions; the script that `5spot completion` prints does so."""
HELP_FLAGS: Final = ("-h", "--help")
FAILED: Final = 1
WRONG_USAGE: Final = 2
CRASHED: Final = 70
"""The `EX_SOFTWARE` of sysexits.h, for commands whose exit code 1 is a verdict."""
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
"""What a shell reports for a program that SIGPIPE ended: 128 and the signal's number."""


class UsageError(Exception):
    """The arguments do not say what to do; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its module, its line in the overview, and its exit code after an error.

    The module has `app`, a `typer.Typer`. One with its own argparse parser has `parser()` and `main(argv)` instead: the
    agent and the operator run for months and need no Typer in memory.
    """

    name: str
    module: str
    summary: str
    failed: int = FAILED
    own_parser: bool = False

    @property
    def exists(self) -> bool:
        """Whether the module is part of this installation."""
        return find_spec(self.module) is not None


COMMANDS: Final = (
    Command("run", "service.commands.run", "Run the operator: webhooks, controller, health, metrics.", own_parser=True),
    Command("agent", "agent.__main__", "Run the agent that requests emergency reclaim of its Node.", own_parser=True),
    Command("preview", "service.commands.preview", "Show when the windows of a schedule open and close.", CRASHED),
    Command("validate", "service.commands.validate", "Check manifests offline, with the webhook's rules.", CRASHED),
    Command("status", "service.commands.status", "Show what machines do now, and what comes next."),
    Command("why", "service.commands.why", "Explain why a machine is, or is not, in its cluster."),
    Command("top", "service.commands.top", "Show machines live, on the whole terminal."),
    Command("console", "service.commands.console", "Serve the fleet as web pages on this machine."),
    Command("console-server", "service.commands.console_server", "Serve the console to many users, in a cluster."),
    Command("extend", "service.commands.extend", "Keep a machine in service beyond its window."),
    Command("suspend", "service.commands.suspend", "Take a machine out of service for a time."),
    Command("skip", "service.commands.skip", "Leave out the next window of a machine."),
    Command("resume", "service.commands.resume", "Return a machine to its schedule."),
    Command("overrides", "service.commands.overrides", "Show who overrides which schedules, and until when."),
    Command("report", "service.commands.report", "Report hours served and freed, punctuality and cost."),
    Command("adopt", "service.commands.adopt", "Reconnect restored ScheduledMachines to their Machines."),
    Command("release", "service.commands.release", "Remove the operator's finalizers after it is uninstalled."),
    Command("local", "local.cli", "Start, show or stop a throw-away control plane on this machine."),
    Command("demo", "local.demo", "Watch seven schedules at work on a throw-away control plane."),
    Command("completion", "service.commands.completion", "Print the completion script for bash, zsh or fish."),
)


def chosen_command(words: Sequence[str]) -> Command | None:
    """The command that the first word names."""
    return next((command for command in COMMANDS if words and command.name == words[0] and command.exists), None)
