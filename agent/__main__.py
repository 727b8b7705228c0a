"""`5spot agent` and `python -m agent`: puts the parts together and ends cleanly on SIGTERM."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Final, NoReturn

from agent.api import Api
from agent.claim import Claimant
from agent.examine import Examiner
from agent.log import log
from agent.loop import Agent
from agent.mailbox import Mailbox
from agent.netlink import EventsUnavailable
from agent.proc import ProcTable
from agent.reports import Reports
from agent.settings import AgentSettings, build_parser, parse
from agent.sources import choose, fall_back
from agent.trigger import TriggerState
from agent.watch import Follower, config_target, node_target

EXAMPLES: Final = """
Examples:
  5spot agent                    in the DaemonSet, which sets NODE_NAME
  5spot agent --source polling   where the kernel grants no process events"""


def parser() -> argparse.ArgumentParser:
    """The flags, for the help, completion and reference of `5spot`; the environment of this process does not count."""
    made = build_parser({})
    made.epilog = EXAMPLES
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the agent until SIGTERM and returns the exit code."""
    settings = parse(sys.argv[1:] if argv is None else argv)
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    try:
        _run(settings)
    except EventsUnavailable as error:
        log("error", "stopped", problem=f"--source events: {error}")
        return 1
    except Exception as error:  # noqa: BLE001 - the outermost border: the kubelet restarts us, the log says why
        log("error", "stopped", problem=f"{type(error).__name__}: {error}")
        return 1
    return 0


def _run(settings: AgentSettings) -> None:
    log("info", "started", node=settings.node, pid=os.getpid(), host_check=settings.host_check)
    table = ProcTable(settings.proc)
    source = choose(settings.source, table, settings.poll_interval)
    mailbox, api = Mailbox(), Api(settings.endpoint)
    claimant = Claimant(api, settings.node, settings.machine_id_file, settings.host_check)
    reports = Reports(mailbox, claimant)
    agent = Agent(
        TriggerState(refire=settings.refire_interval),
        mailbox,
        source,
        Examiner(table, match_pods=settings.match_pods),
        claimant,
        fall_back=lambda why: fall_back(table, settings.poll_interval, why),
    )
    _start(mailbox, Follower(api, config_target(settings.node), reports.config).run)
    _start(mailbox, Follower(api, node_target(settings.node), reports.node).run)
    agent.run()


def _start(mailbox: Mailbox, work: Callable[[], None]) -> None:
    def guarded() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a dead thread must end the process, not leave it deaf
            mailbox.put(error)

    threading.Thread(target=guarded, daemon=True).start()


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    log("info", "stopped", signal=signal.Signals(number).name)
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main())
