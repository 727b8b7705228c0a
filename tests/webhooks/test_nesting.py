import time
from typing import Any

import orjson
import pytest

from tests.webhooks.reviews import UID, at_once, machine, review
from webhooks.review import MalformedReviewError, parse
from webhooks.verdict import Gate


def deep(levels: int, end: str = "1") -> str:
    """JSON that is nested deeper than orjson could write."""
    return '{"a":[' * levels + end + "]}" * levels


def deep_review(**bodies: str) -> bytes:
    """A review of an update in which the bootstrap specs of `object` and `oldObject` are these texts."""
    made = machine()
    made["spec"]["bootstrapSpec"]["spec"] = "@object@"
    before = machine()
    before["spec"]["bootstrapSpec"]["spec"] = "@oldObject@"
    text = orjson.dumps(review(made, old=before)).decode()
    for name, body in bodies.items():
        text = text.replace(f'"@{name}@"', body)
    return text.encode()


def answered(body: bytes) -> dict[str, Any]:
    response: dict[str, Any] = orjson.loads(at_once(Gate().validate(parse(body))).body)["response"]
    return response


def test_an_object_deeper_than_the_decoder_reads_is_refused_at_its_path_with_the_limit():
    response = answered(deep_review(object=deep(4000), oldObject="{}"))
    assert response["allowed"] is False
    (cause,) = response["status"]["details"]["causes"]
    assert cause["field"] == "spec.bootstrapSpec.spec"
    assert "must not be nested deeper than 100 levels" in cause["message"]


def test_an_object_stored_that_deep_can_be_edited_elsewhere_and_repaired_but_not_deepened():
    assert answered(deep_review(object=deep(4000), oldObject=deep(4000)))["allowed"] is True
    assert answered(deep_review(object="{}", oldObject=deep(4000)))["allowed"] is True
    assert answered(deep_review(object=deep(4000, "2"), oldObject=deep(4000)))["allowed"] is False


def test_brackets_and_quotes_in_texts_are_not_nesting():
    odd = orjson.dumps({"text": '[{"' * 3000 + "\\"}).decode()
    assert answered(deep_review(object=odd, oldObject="{}"))["allowed"] is True
    assert answered(deep_review(object=f'{{"b":{odd},"c":{deep(2000)}}}', oldObject="{}"))["allowed"] is False


def test_what_is_too_deep_and_too_large_to_measure_is_refused_all_the_same():
    comb = "[" + ",".join([deep(600)] * 500) + "]"
    with pytest.raises(MalformedReviewError, match="nested deeper than 100 levels") as refused:
        parse(deep_review(object=comb, oldObject="{}"))
    assert refused.value.uid == UID


@pytest.mark.parametrize("body", [b"[" * 3_000_000, b'"' + b'\\"' * 1_000_000, b'{"a":' * 1000 + b"]" * 3000])
def test_looking_for_depth_takes_little_time_whatever_comes(body: bytes):
    began = time.process_time()
    with pytest.raises(MalformedReviewError):
        parse(body)
    assert time.process_time() - began < 0.5
