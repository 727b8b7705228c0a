import pytest

from crds.violations import Violation, ViolationReason, path_of, printable, shown


@pytest.mark.parametrize(
    ("loc", "path"),
    [
        (("nodeTaints", 0, "key"), "spec.nodeTaints[0].key"),
        (("machineTemplate", "labels", "a/b"), "spec.machineTemplate.labels[a/b]"),
        (("machineTemplate", "annotations", "a/b", "[key]"), "spec.machineTemplate.annotations[a/b]"),
        (("bad\nname",), "spec.bad\\nname"),
        ((), "spec"),
    ],
)
def test_a_place_is_written_as_kubernetes_users_know_it(loc, path):
    assert path_of("spec", loc) == path


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, True),
        (50, 50),
        ("50", "50"),
        ("a\x00\u202eb", "a\\x00\\u202eb"),
        ([1, 2], "[list of 2]"),
        ({"a": 1, "b": {}}, "{a, b}"),
        ({str(n): n for n in range(9)}, "{0, 1, 2, 3, …}"),
        (2**64, "18446744073709551616"),
    ],
)
def test_values_are_shown_as_they_are_or_sketched(value, text):
    assert shown(value) == text


def test_long_text_is_cut():
    assert len(printable("x" * 10**6)) == 120
    assert len(printable("\x00" * 10**6)) == 120


def test_a_violation_reads_as_one_line():
    assert str(Violation("a.b", "x\\n", "must be y")) == 'a.b: "x\\n": must be y'
    assert str(Violation("a.b", None, "is required", ViolationReason.REQUIRED)) == "a.b: is required"
