"""From bytes to objects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.kube import decode
from service.kube.decode import decoded, event, lines
from service.kube.errors import Expired, Unavailable


async def chunks(parts):
    for part in parts:
        yield part


@given(st.lists(st.binary(min_size=1, max_size=8).filter(lambda b: b"\n" not in b), max_size=6), st.data())
async def test_lines_come_out_whole_however_the_stream_was_cut(texts, data):
    stream = b"".join(text + b"\n" for text in texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [line async for line in lines(chunks(parts))] == texts


async def test_a_line_without_end_is_cut_off(monkeypatch):
    monkeypatch.setattr(decode, "_LINE_LIMIT", 10)
    with pytest.raises(Unavailable, match="longer than 10 bytes"):
        [line async for line in lines(chunks([b"12345", b"67890", b"1"]))]


def test_an_error_line_is_raised():
    with pytest.raises(Expired):
        event(b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}', "watch")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b'{"a":'])
def test_what_is_no_json_object_is_the_servers_failure(body):
    with pytest.raises(Unavailable):
        decoded(body)


@pytest.mark.parametrize("line", [b"{}", b'{"type":"ADDED"}', b'{"type":"ADDED","object":7}'])
def test_a_malformed_event_is_the_servers_failure(line):
    with pytest.raises(Unavailable):
        event(line, "watch")
