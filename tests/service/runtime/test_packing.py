"""Whatever is packed comes back as it was, and objects that resemble each other take little room."""

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from service.runtime.packing import MANY, SMALL, Packing, PackingSample, unpacked
from tests.webhooks.reviews import machine

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=60,
)


def history(number: int) -> list[dict[str, str]]:
    return [{"opened": f"2026-03-{day:02}T09:{number % 60:02}:00Z", "reason": "WindowClosed"} for day in range(1, 11)]


def stored(number: int) -> dict[str, Any]:
    """One of many ScheduledMachines, as different from the next as in life."""
    metadata = {"name": f"desk-{number}", "uid": f"{number:08}-0000-4000-8000-{number * 7919:012}"}
    return machine() | {"metadata": metadata, "status": {"phase": "Pending", "history": history(number)}}


@given(value=JSON, sample=JSON)
def test_what_is_compressed_by_any_sample_comes_back(value: Any, sample: Any):
    by, text = PackingSample(orjson.dumps(sample)), orjson.dumps(value)
    assert by.restored(by.compressed(text)) == text
    assert by.restored(by.compressed(text)) == text, "a second time, as the sample is used for every object"


def test_a_sample_that_is_longer_than_the_window_helps_as_well():
    long = b"[" + b'"filler",' * 5000 + orjson.dumps(stored(1)) + b"]"
    assert len(PackingSample(long).compressed(orjson.dumps(stored(2)))) < len(orjson.dumps(stored(2))) / 4


def test_many_objects_take_a_quarter_and_few_are_left_alone():
    packing = Packing()
    plain = packed = 0
    for number in range(10 * MANY):
        given, kept = stored(number), number
        content, sample = packing.pack(given, kept)
        assert unpacked(content, sample) == given
        assert (sample is None) == (kept < MANY)
        plain += len(orjson.dumps(given))
        packed += len(content)
    assert packed < plain / 4


def test_the_sample_follows_objects_that_change():
    packing = Packing()
    short = [packing.pack(machine() | {"metadata": {"name": f"m-{number}"}}, MANY) for number in range(MANY + 1)]
    long = [packing.pack(stored(number), MANY) for number in range(20 * MANY)]
    assert short[-1][1] is not long[-1][1]
    assert len(long[-1][0]) < len(long[0][0]) / 1.5


def test_a_short_text_stays_as_it_is():
    content, sample = Packing().pack({"a": "b"}, MANY)
    assert (content, sample) == (b'{"a":"b"}', None)
    assert len(content) < SMALL
