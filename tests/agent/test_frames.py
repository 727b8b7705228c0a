"""Frames as recorded from a 6.18 kernel (little-endian), and variations of them."""

import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.frames import EVENT_OFFSET, IDS_OFFSET, LISTEN, Ack, Started, kernel_filter, parse, subscription

ACK = bytes.fromhex(
    "4c0000000300000000000000000000000100000001000000000000000100000028000000"
    "0000000000000000525437cea700000000000000000000000000000000000000000000000000000000"
)  # fmt: skip
FORK = bytes.fromhex(
    "4c0000000300000001000000000000000100000001000000010000000000000028000000"
    "01000000000000004dff37cea7000000064d0000064d0000394d0000394d00000000000000000000"
)
EXEC = bytes.fromhex(
    "4c0000000300000002000000000000000100000001000000020000000000000028000000"
    "02000000000000004bdc46cea7000000394d0000394d000000000000000000000000000000000000"
)
EXIT = bytes.fromhex(
    "4c0000000300000003000000000000000100000001000000030000000000000028000000"
    "0000008000000000c96253cea7000000394d0000394d00000000000011000000064d0000064d0000"
)  # fmt: skip


def changed(frame: bytes, offset: int, form: str, *values: int) -> bytes:
    raw = bytearray(frame)
    struct.pack_into(form, raw, offset, *values)
    return bytes(raw)


COMM = changed(EXEC, EVENT_OFFSET, "=I", 0x200)
THREAD_COMM = changed(COMM, IDS_OFFSET, "=I", 0x4D3A)
REFUSAL = changed(ACK, IDS_OFFSET, "=I", 1)


@pytest.mark.parametrize(
    ("frame", "reports"),
    [
        pytest.param(ACK, [Ack(0, token=0)], id="subscribed"),
        pytest.param(REFUSAL, [Ack(1, token=0)], id="refused"),
        pytest.param(changed(ACK, 28, "=I", 8), [Ack(0, token=7)], id="whose subscription"),
        pytest.param(EXEC, [Started(0x4D39)], id="program started"),
        pytest.param(COMM, [Started(0x4D39)], id="process renamed"),
        pytest.param(THREAD_COMM, [], id="thread renamed"),
        pytest.param(FORK, [], id="fork"),
        pytest.param(EXIT, [], id="exit"),
        pytest.param(EXEC + COMM, [Started(0x4D39), Started(0x4D39)], id="two in one datagram"),
        pytest.param(changed(EXEC, 16, "=I", 9), [], id="another connector"),
        pytest.param(changed(EXEC, 4, "=H", 2), [], id="netlink error"),
        pytest.param(changed(EXEC, 0, "=I", 8), [], id="length too small"),
        pytest.param(changed(EXEC, 0, "=I", 4096), [], id="length too large"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_frames_say_what_they_say(frame: bytes, reports: list[object]):
    assert sys.byteorder == "little", "the recorded frames are little-endian"
    assert list(parse(frame)) == reports


@pytest.mark.parametrize("length", range(len(EXEC)))
def test_a_frame_cut_short_anywhere_is_passed_over(length: int):
    assert list(parse(EXEC[:length])) == []
    assert list(parse(changed(EXEC, 0, "=I", length)[:length])) in ([], [Started(0x4D39)])


@given(st.binary(max_size=300))
def test_no_bytes_upset_the_parser(raw: bytes):
    list(parse(raw))


@given(st.integers(0, len(EXEC) - 1), st.integers(0, 255))
def test_no_single_wrong_byte_upsets_the_parser(offset: int, value: int):
    list(parse(changed(EXEC, offset, "=B", value)))


def test_the_subscription_is_what_the_kernel_expects():
    assert subscription(LISTEN).hex() == (
        "28000000030000000000000000000000010000000100000000000000000000000400000001000000"
    )  # fmt: skip


def accepted(frame: bytes) -> bool:
    """Runs the filter's few instructions as the kernel would."""
    program = list(struct.iter_unpack("=HBBI", kernel_filter()))
    a = x = at = 0
    while True:
        code, if_true, if_false, k = program[at]
        at += 1
        match code:
            case 0x20:
                a = int.from_bytes(frame[k : k + 4], "big")
            case 0x07:
                x = a
            case 0x15:
                at += if_true if a == k else if_false
            case 0x1D:
                at += if_true if a == x else if_false
            case 0x06:
                return k > 0


@pytest.mark.parametrize(
    ("frame", "passes"),
    [(ACK, True), (EXEC, True), (COMM, True), (THREAD_COMM, False), (FORK, False), (EXIT, False)],
    ids=["subscribed", "exec", "renamed", "thread renamed", "fork", "exit"],
)
def test_the_kernel_side_filter_lets_through_what_matters(frame: bytes, passes: bool):
    assert accepted(frame) is passes
