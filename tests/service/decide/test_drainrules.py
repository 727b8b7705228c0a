import pytest

from service.decide.drainrules import AWAITED, DRAIN_LABEL, EVICTED, SKIPPED, Behavior, Treatment, read_rules

MACHINE = {"os": "linux"}
CLUSTER = {"stage": "production"}
BATCH = {"app": "batch"}


def rule(name="rule", behavior="Skip", order=None, **spec):
    drain = {"behavior": behavior} if order is None else {"behavior": behavior, "order": order}
    return {"metadata": {"name": name, "namespace": "team"}, "spec": {"drain": drain, **spec}}


def selects(**labels):
    return {"selector": {"matchLabels": labels}}


def rules(*listed):
    return read_rules(listed, MACHINE, CLUSTER)


def treatment(*listed, pod=BATCH, namespace=None):
    return rules(*listed).treatment(pod, namespace)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("skip", SKIPPED),
        ("Skip", SKIPPED),
        ("SKIP", SKIPPED),
        ("wait-completed", AWAITED),
        ("Wait-Completed", AWAITED),
        ("WaitCompleted", AWAITED),
        ("drain", EVICTED),
        ("wait--completed", EVICTED),
        ("", EVICTED),
    ],
)
def test_the_label_of_a_pod_counts_whatever_its_case(value, expected):
    assert treatment(pod={DRAIN_LABEL: value}) == expected


def test_the_label_goes_before_every_rule():
    evict = rule(behavior="Drain", order=3)
    assert treatment(evict, pod={DRAIN_LABEL: "skip"}) == SKIPPED
    assert treatment(evict, pod={DRAIN_LABEL: "what"}) == Treatment(Behavior.DRAIN, 3)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (rule(behavior="Drain"), EVICTED),
        (rule(behavior="Drain", order=-7), Treatment(Behavior.DRAIN, -7)),
        (rule(behavior="Skip"), SKIPPED),
        (rule(behavior="WaitCompleted"), AWAITED),
        (rule(behavior="WaitCompleted", order=5), AWAITED),
    ],
)
def test_a_rule_without_selectors_is_for_all_pods_of_all_machines(given, expected):
    assert treatment(given) == expected


def test_without_a_rule_that_applies_a_pod_is_evicted_in_order_0():
    assert treatment() == treatment(rule(pods=[selects(app="web")])) == EVICTED


def test_the_first_rule_by_name_that_applies_decides():
    later, first = rule("b", "Skip"), rule("a", "WaitCompleted")
    other = rule("0", "Drain", 9, pods=[selects(app="web")])
    assert treatment(later, first, other) == AWAITED


@pytest.mark.parametrize(
    ("machines", "applies"),
    [
        (None, True),
        ([], True),
        ([selects(os="linux")], True),
        ([selects(os="windows")], False),
        ([selects(os="windows"), selects(os="linux")], True),
        ([{"clusterSelector": {"matchLabels": {"stage": "production"}}}], True),
        ([{"clusterSelector": {"matchLabels": {"stage": "test"}}}], False),
        ([{**selects(os="linux"), "clusterSelector": {"matchLabels": {"stage": "test"}}}], False),
        ([{"selector": {}, "clusterSelector": {}}], True),
    ],
)
def test_a_rule_is_for_the_machines_and_clusters_that_it_selects(machines, applies):
    assert treatment(rule(machines=machines)) == (SKIPPED if applies else EVICTED)


@pytest.mark.parametrize(
    ("pods", "applies"),
    [
        ([selects(app="batch")], True),
        ([selects(app="web")], False),
        ([selects(app="web"), selects(app="batch")], True),
        ([{"namespaceSelector": {"matchLabels": {"team": "data"}}}], True),
        ([{"namespaceSelector": {"matchLabels": {"team": "web"}}}], False),
        ([{**selects(app="web"), "namespaceSelector": {"matchLabels": {"team": "data"}}}], False),
    ],
)
def test_a_rule_is_for_the_pods_and_namespaces_that_it_selects(pods, applies):
    assert treatment(rule(pods=pods), namespace={"team": "data"}) == (SKIPPED if applies else EVICTED)


def test_labels_of_namespaces_are_read_only_where_a_rule_for_this_machine_selects_by_them():
    by_namespace = [{"namespaceSelector": {"matchLabels": {"team": "data"}}}]
    assert rules(rule(pods=by_namespace)).ask_for_namespaces
    assert not rules(rule(pods=[{**selects(app="x"), "namespaceSelector": {}}])).ask_for_namespaces
    assert not rules(rule(pods=by_namespace, machines=[selects(os="windows")])).ask_for_namespaces


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"metadata": {"name": "bad"}}, "spec.drain"),
        ({"metadata": {"name": "bad"}, "spec": None}, "spec.drain"),
        (rule("bad", "Evict"), "behavior"),
        (rule("bad", "Drain", "1"), "order"),
        (rule("bad", pods="all"), "lists"),
        (rule("bad", pods=["all"]), "lists"),
        (rule("bad", machines=[{"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}]), "operator"),
    ],
)
def test_one_rule_that_cannot_be_read_leaves_none_to_rely_on(broken, said):
    found = rules(rule("good"), broken)
    assert found.rules == ()
    assert "MachineDrainRule bad cannot be read" in found.problem
    assert said in found.problem


def test_more_requirements_than_can_be_compared_quickly_are_a_problem():
    many = [{"key": f"k{number}", "operator": "Exists"} for number in range(600)]
    listed = [rule(name, pods=[{"selector": {"matchExpressions": many}}]) for name in ("a", "b")]
    assert rules(listed[0]).problem is None
    assert "1000 requirements" in rules(*listed).problem
