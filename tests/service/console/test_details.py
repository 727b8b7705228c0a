"""The object as text on a machine's page."""

from typing import Any

import pytest
import yaml

from service.console import details
from tests.corpus import base


def large(**content: Any) -> dict[str, Any]:
    body = base()
    body["metadata"]["namespace"] = "team"
    body["spec"]["bootstrapSpec"]["spec"] = content
    return body


def deep(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"k": found}
    return found


def test_an_object_is_shown_as_it_is_stored() -> None:
    body = large(text="é <b> 'quoted'\n", number=1, nested=deep(60))
    assert yaml.safe_load(details._yaml(body)) == body


@pytest.mark.parametrize("body", [large(text="x" * 300_000), large(nested=deep(900))], ids=["long", "deep"])
def test_one_that_would_keep_others_waiting_is_named_only(body: dict[str, Any]) -> None:
    found = details._yaml(body)
    assert len(found) < 300
    assert f"kubectl get scheduledmachine {body['metadata']['name']} -n team -o yaml" in found
