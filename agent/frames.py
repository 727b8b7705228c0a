"""The frames of the kernel's process connector: how to subscribe, what comes back, and the filter that thins it out.

Layout: netlink header, connector header, `struct proc_event` of linux/cn_proc.h. Pure; netlink.py does the I/O.
"""

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

PROC_GROUP = 1
PROC_VALUE = 1
LISTEN = 1
IGNORE = 2
NLMSG_DONE = 3

EVENT_NONE = 0x00000000
EVENT_EXEC = 0x00000002
EVENT_COMM = 0x00000200

NETLINK_HEADER = struct.Struct("=IHHII")
CONNECTOR_HEADER = struct.Struct("=IIIIHH")
EVENT_HEADER = struct.Struct("=IIQ")
TWO_IDS = struct.Struct("=II")
CODE = struct.Struct("=I")
EVENT_OFFSET = NETLINK_HEADER.size + CONNECTOR_HEADER.size
IDS_OFFSET = EVENT_OFFSET + EVENT_HEADER.size


@dataclass(frozen=True, slots=True)
class Ack:
    """The kernel's answer to a subscription: 0, or an errno. All listeners receive it: `token` says whose it is."""

    error: int
    token: int


@dataclass(frozen=True, slots=True)
class Started:
    """A process has started a program or changed its name."""

    pid: int


def parse(datagram: bytes) -> Iterator[Ack | Started]:
    """What a datagram from the kernel reports; malformed or unknown parts are passed over."""
    offset = 0
    while offset + NETLINK_HEADER.size <= len(datagram):
        length, kind, *_ = NETLINK_HEADER.unpack_from(datagram, offset)
        if length < NETLINK_HEADER.size or offset + length > len(datagram):
            return
        if kind == NLMSG_DONE:
            yield from _parse_message(datagram[offset : offset + length])
        offset += (length + 3) & ~3


def _parse_message(message: bytes) -> Iterator[Ack | Started]:
    if len(message) < IDS_OFFSET + CODE.size:
        return
    index, value, _, acknowledged, _, _ = CONNECTOR_HEADER.unpack_from(message, NETLINK_HEADER.size)
    if (index, value) != (PROC_GROUP, PROC_VALUE):
        return
    what, _, _ = EVENT_HEADER.unpack_from(message, EVENT_OFFSET)
    if what == EVENT_NONE:
        (error,) = CODE.unpack_from(message, IDS_OFFSET)
        yield Ack(error, token=acknowledged - 1)  # the kernel counts one up
    elif what in {EVENT_EXEC, EVENT_COMM} and len(message) >= IDS_OFFSET + TWO_IDS.size:
        thread, process = TWO_IDS.unpack_from(message, IDS_OFFSET)
        if thread == process:  # other threads' names are not the process's
            yield Started(process)


def subscription(operation: int, token: int = 0) -> bytes:
    """The message that starts (LISTEN) or ends (IGNORE) the stream; the answer carries the same token."""
    payload = CODE.pack(operation)
    body = CONNECTOR_HEADER.pack(PROC_GROUP, PROC_VALUE, 0, token, len(payload), 0) + payload
    return NETLINK_HEADER.pack(NETLINK_HEADER.size + len(body), NLMSG_DONE, 0, 0, 0) + body


def kernel_filter() -> bytes:
    """A classic BPF program: forks, exits and the names of mere threads never wake the agent.

    Its loads are big-endian, so the constants compared with are swapped on little-endian machines.
    """
    load, jump_equal, jump_equal_x, to_x, give = 0x20, 0x15, 0x1D, 0x07, 0x06
    program = (
        (load, 0, 0, EVENT_OFFSET),
        (jump_equal, 6, 0, socket.htonl(EVENT_EXEC)),
        (jump_equal, 5, 0, socket.htonl(EVENT_NONE)),
        (jump_equal, 0, 5, socket.htonl(EVENT_COMM)),
        (load, 0, 0, IDS_OFFSET),
        (to_x, 0, 0, 0),
        (load, 0, 0, IDS_OFFSET + CODE.size),
        (jump_equal_x, 0, 1, 0),
        (give, 0, 0, 0xFFFFFFFF),
        (give, 0, 0, 0),
    )
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
