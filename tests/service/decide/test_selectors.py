import pytest

from crds.invalid import InvalidValue
from service.decide.selectors import read_selector

WEB = {"app": "web", "tier": "front"}


def expression(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, True),
        ({}, True),
        ({"matchLabels": {}, "matchExpressions": None}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchLabels": {"app": "web", "zone": "a"}}, False),
        (expression("app", "In", "db", "web"), True),
        (expression("app", "In", "db"), False),
        (expression("zone", "In", "a"), False),
        (expression("app", "NotIn", "db"), True),
        (expression("app", "NotIn", "web"), False),
        (expression("zone", "NotIn", "a"), True),
        (expression("app", "Exists"), True),
        (expression("zone", "Exists"), False),
        (expression("zone", "DoesNotExist"), True),
        (expression("app", "DoesNotExist"), False),
        ({"matchLabels": {"app": "web"}, **expression("tier", "In", "back")}, False),
        ({"matchLabels": {"app": "web"}, **expression("tier", "Exists")}, True),
    ],
)
def test_all_requirements_must_hold_and_none_select_everything(selector, matches):
    assert read_selector(selector).matches(WEB) is matches


@pytest.mark.parametrize(
    "selector",
    [
        "app=web",
        {"matchLabels": ["app"]},
        {"matchLabels": {"app": 1}},
        {"matchLabels": {"a b": "web"}},
        {"matchLabels": {"app": "not a value"}},
        {"matchExpressions": {"key": "app"}},
        {"matchExpressions": ["app"]},
        {"matchExpressions": [{"operator": "Exists"}]},
        expression("app", "Gt", "1"),
        expression("app", "in", "web"),
        expression("app", "In"),
        expression("app", "NotIn"),
        expression("app", "Exists", "web"),
        expression("app", "DoesNotExist", "web"),
        expression("app", "In", 5),
    ],
)
def test_what_kubernetes_would_refuse_is_refused(selector):
    with pytest.raises(InvalidValue):
        read_selector(selector)
