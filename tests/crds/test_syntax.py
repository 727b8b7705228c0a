import pytest

from crds import syntax
from crds.invalid import InvalidValue

ACCEPTED = [
    (syntax.taint_key, "k8s.io/x"),
    (syntax.taint_key, "Example"),
    (syntax.taint_key, "notkubernetes.io/x"),
    (syntax.label_key, "app.kubernetes.io/name"),
    (syntax.label_key, "x-k8s.io/a"),
    (syntax.annotation_key, "EXAMPLE.com/Name"),
    (syntax.label_value, ""),
    (syntax.cluster_name, "a.b-c.d"),
    (syntax.namespace, "a-1"),
    (syntax.kind, "A"),
    (syntax.api_version, "a.b/v1alpha1"),
    (syntax.machine_name, "a" * 53),
]

REFUSED = [
    (syntax.taint_key, "cluster.x-k8s.io/x", "reserved"),
    (syntax.taint_key, "a.cluster.x-k8s.io/x", "reserved"),
    (syntax.taint_key, "/x", "prefix"),
    (syntax.taint_key, "a/", "name part"),
    (syntax.taint_key, "a" * 190 + "/" + "b" * 63, "at most 253"),
    (syntax.label_key, "k8s.io/x", "app.kubernetes.io/"),
    (syntax.label_key, "APP.kubernetes.io/x", "prefix"),
    (syntax.annotation_key, "K8S.IO/x", "reserved"),
    (syntax.annotation_key, "node-restriction.kubernetes.io/x", "reserved"),
    (syntax.annotation_key, "\u212aubernetes.io/x", "prefix"),
    (syntax.label_value, "a\n", "must be"),
    (syntax.label_value, "-", "must be"),
    (syntax.cluster_name, "a.", "must be"),
    (syntax.namespace, "a.b", "namespace"),
    (syntax.kind, "a", "kind"),
    (syntax.kind, "Ä", "kind"),
    (syntax.api_version, "a.b/v1beta", "version"),
    (syntax.api_version, "a.b/v1\n", "version"),
    (syntax.machine_name, "a" * 54, "53"),
]


@pytest.mark.parametrize(("rule", "text"), ACCEPTED)
def test_good_names_pass_unchanged(rule, text):
    assert rule(text) == text


@pytest.mark.parametrize(("rule", "text", "hint"), REFUSED)
def test_bad_names_are_refused_with_what_is_allowed(rule, text, hint):
    with pytest.raises(InvalidValue, match=hint):
        rule(text)


@pytest.mark.parametrize("rule", [rule for rule, _ in ACCEPTED])
def test_long_input_is_refused_quickly(rule):
    with pytest.raises(InvalidValue):
        rule("a." * 500_000 + "!")
