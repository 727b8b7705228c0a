"""The agent's settings: from the command line first, the pod's environment second. Read once, at start."""

import argparse
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

from agent.api import APIServer
from agent.claim import HostCheck
from agent.sources import SourceChoice

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MIN_POLL_SECONDS = 0.05
MAX_POLL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Everything that can be set."""

    node: str
    endpoint: APIServer
    source: SourceChoice
    poll_interval: float
    match_pods: bool
    machine_id_file: Path
    host_check: HostCheck
    refire_interval: float
    proc: str


def parse(argv: Sequence[str], env: Mapping[str, str] = os.environ) -> AgentSettings:
    """Settings from the command line and the environment; ends the process with a usage message if they are wrong."""
    parser = build_parser(env)
    args = parser.parse_args(argv)
    if not args.node:
        parser.error("no node name: set NODE_NAME (the DaemonSet does, from spec.nodeName) or give --node")
    try:
        endpoint = _endpoint(args.server or _in_cluster(env), args.ca_file, args.token_file)
    except ValueError as error:
        parser.error(str(error))
    return AgentSettings(
        node=args.node,
        endpoint=endpoint,
        source=args.source,
        poll_interval=args.poll_interval,
        match_pods=args.match_pods,
        machine_id_file=args.machine_id_file,
        host_check=args.host_check,
        refire_interval=args.refire_interval,
        proc=args.proc,
    )


def build_parser(env: Mapping[str, str]) -> argparse.ArgumentParser:
    """The flags of `5spot agent`; the node's default comes from the environment."""
    parser = argparse.ArgumentParser(
        prog="5spot agent",
        description="Watches this host's processes for the patterns in ConfigMap reclaim-agent-<node> (namespace "
        "5spot-system) and, when a process that matches starts, requests the host back by annotations on its own Node. "
        "It never stops a process and never touches another Node.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--node", default=env.get("NODE_NAME", ""), metavar="NAME", help="this host's Node (default: $NODE_NAME)")
    _add_process_options(parser)
    add("--machine-id-file", type=Path, default=Path("/etc/machine-id"), metavar="PATH",
        help="the host's machine-id (default: %(default)s)")  # fmt: skip
    add("--host-check", choices=get_args(HostCheck), default="strict",
        help="strict: write only if the Node's machineID is this host's; lenient: also if either is unknown; "
        "off: do not compare (default: %(default)s)")  # fmt: skip
    add("--refire-interval", type=_refire_seconds, default=2.0, metavar="SECONDS",
        help="minimum time between two requests (default: %(default)s)")  # fmt: skip
    _add_server_options(parser)
    return parser


def _add_process_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--source", choices=get_args(SourceChoice), default="auto",
        help="events: the kernel's process events; polling: scan /proc; auto: events where the kernel "
        "grants them, otherwise polling (default: %(default)s)")  # fmt: skip
    add("--poll-interval", type=_poll_seconds, default=0.25, metavar="SECONDS",
        help="time between two scans when polling (default: %(default)s)")  # fmt: skip
    add("--match-pods", action="store_true",
        help="let processes of pods match too; any tenant can then remove the node")  # fmt: skip
    add("--proc", default="/proc", metavar="PATH", help="the host's process table (default: %(default)s)")


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--server", default="", metavar="URL", help="the API server (default: the one of this pod's cluster)")
    add("--ca-file", type=Path, default=ACCOUNT / "ca.crt", metavar="PATH",
        help="the cluster's CA certificate (default: %(default)s)")  # fmt: skip
    add("--token-file", type=Path, default=ACCOUNT / "token", metavar="PATH",
        help="the agent's token, read again for each request (default: %(default)s)")  # fmt: skip


def _in_cluster(env: Mapping[str, str]) -> str:
    host = env.get("KUBERNETES_SERVICE_HOST", "")
    if not host:
        raise ValueError("no API server: not in a pod (KUBERNETES_SERVICE_HOST is not set) and no --server given")
    return f"https://{f'[{host}]' if ':' in host else host}:{env.get('KUBERNETES_SERVICE_PORT', '443')}"


def _endpoint(server: str, ca_file: Path, token_file: Path) -> APIServer:
    url = urlsplit(server)
    if url.scheme != "https" or not url.hostname or url.path.strip("/"):
        raise ValueError(f"the API server must be given as https://host:port, not {server!r}")
    return APIServer(url.hostname, url.port or 443, ca_file, token_file)


def _refire_seconds(text: str) -> float:
    return _seconds(text, 0, 3600)


def _poll_seconds(text: str) -> float:
    return _seconds(text, MIN_POLL_SECONDS, MAX_POLL_SECONDS)


def _seconds(text: str, least: float, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"must be {least:g} to {most:g} seconds, not {text!r}")
    return value
