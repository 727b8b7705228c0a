"""From bytes to objects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.kube import decode
from service.kube.decode import Line, decoded, event, lines, named_item
from service.kube.errors import Expired, Unavailable


async def chunks(parts):
    for part in parts:
        yield part


@given(st.lists(st.binary(min_size=1, max_size=8).filter(lambda b: b"\n" not in b), max_size=6), st.data())
async def test_lines_come_out_whole_however_the_stream_was_cut(texts, data):
    stream = b"".join(text + b"\n" for text in texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [line.text async for line in lines(chunks(parts))] == texts


async def test_a_line_without_end_is_cut_off():
    with pytest.raises(Unavailable, match="longer than 160 bytes"):
        [line async for line in lines(chunks([b"12345", b"6" * 156]), most=10)]


async def test_of_a_line_that_is_too_long_only_the_beginning_is_kept_and_the_next_is_whole():
    found = [line async for line in lines(chunks([b"12345", b"67890", b"1\n", b"next\n"]), most=10)]
    assert found == [Line(b"1234567890", whole=False), Line(b"next")]


async def test_an_error_line_is_raised():
    with pytest.raises(Expired):
        await event(Line(b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}'), "watch")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b'{"a":', b'{"a":' * 3000])
async def test_an_answer_that_is_not_a_json_object_makes_the_server_unavailable(body):
    with pytest.raises(Unavailable):
        await decoded(body)


@pytest.mark.parametrize("line", [b"{}", b'{"type":"ADDED"}', b'{"type":"ADDED","object":7}'])
async def test_a_malformed_event_is_the_servers_failure(line):
    with pytest.raises(Unavailable):
        await event(Line(line), "watch")


NAMED = b'"metadata":{"annotations":{"name":"not this"},"name":"a","namespace":"ns","resourceVersion":"7","uid":"u"}'
IDENTITY = {"metadata": {"name": "a", "namespace": "ns", "resourceVersion": "7", "uid": "u"}}


def deep(levels):
    return b'{"a":' * levels + b"[]" + b"}" * levels


@pytest.mark.parametrize("levels", [1_100, 30_000])
async def test_what_is_nested_deeper_than_the_decoder_takes_is_cut_off_and_the_rest_is_whole(levels):
    body = b'{"items":[{"spec":%s,"after":"]}\\""},{"spec":{"b":[1,{}]}}]}' % deep(levels)
    first, second = (await decoded(body))["items"]
    assert (second, first["after"]) == ({"spec": {"b": [1, {}]}}, ']}"')
    depth, inner = 0, first["spec"]
    while inner is not None:
        depth, inner = depth + 1, inner["a"]
    assert depth == decode.LEVELS - 3


async def test_an_event_with_a_deep_object_is_an_event_like_others():
    line = Line(b'{"type":"MODIFIED","object":{%s,"spec":%s}}' % (NAMED, deep(2_000)))
    found = await event(line, "watch")
    assert (found.type, found.object["metadata"]["uid"], found.too_large) == ("MODIFIED", "u", "")


async def test_of_an_event_that_is_too_long_the_identity_is_found_in_its_beginning():
    text = b'{"type":"ADDED","object":{"apiVersion":"v1",%s,"spec":{"text":"' % NAMED
    found = await event(Line(text + b"x" * 50_000, whole=False), "watch")
    assert (found.type, found.object) == ("ADDED", IDENTITY)
    assert found.too_large


async def test_an_event_with_too_many_values_is_named_and_not_decoded():
    text = b'{"type":"ADDED","object":{%s,"spec":[%s0]}}' % (NAMED, b"0," * 100)
    assert (await event(Line(text), "watch", values=50)).object == IDENTITY
    assert not (await event(Line(text), "watch", values=500)).too_large


async def test_a_list_of_one_item_that_is_too_large_still_has_its_identity_and_the_next_page():
    item = b'{%s,"spec":{"metadata":{"name":"nor this"}}}' % NAMED
    ours = b'{"apiVersion":"v1","items":[%s],"kind":"List","metadata":{"continue":"next","resourceVersion":"9"}}' % item
    theirs = b'{"kind":"List","metadata":{"resourceVersion":"9","continue":"next"},"items":[%s]}' % item
    for body in (ours, theirs):
        found = await named_item(body)
        assert found == {"metadata": {"continue": "next", "resourceVersion": "9"}, "items": [IDENTITY]}
