import pytest

from service.decide.hosts import DEFAULT_IDENTITIES, HostIdentities, canonical, host_of, recorded
from service.decide.world import Role
from tests.service.decide.builders import SPEC, child, running_world, spec, world

REMOTE = ("infrastructure.cluster.x-k8s.io/v1beta1", "RemoteMachine")


def of(**fields):
    return DEFAULT_IDENTITIES.of(*REMOTE, fields)


@pytest.mark.parametrize(
    "same",
    [
        {"address": "192.0.2.7"},
        {"address": "192.0.2.7", "port": 22},
        {"address": " 192.0.2.7 ", "port": "22"},
        {"address": "::ffff:192.0.2.7", "port": 22.0},
        {"address": "192.0.2.7", "port": None, "user": "root", "pool": "ignored"},
    ],
)
def test_specs_that_name_the_same_host_are_recognised(same):
    assert of(**same) == of(address="192.0.2.7", port=22)


def test_the_version_of_the_kind_does_not_matter():
    assert DEFAULT_IDENTITIES.of("infrastructure.cluster.x-k8s.io/v1beta2", "RemoteMachine", {"address": "a"}) == of(
        address="a"
    )


@pytest.mark.parametrize("other", [{"address": "192.0.2.8"}, {"address": "192.0.2.7", "port": 2222}])
def test_specs_that_name_another_host_are_distinguished(other):
    assert of(**other) not in (None, of(address="192.0.2.7"))


@pytest.mark.parametrize(
    "spec", [{}, {"pool": "racks"}, {"address": ""}, {"address": None}, {"address": ["192.0.2.7"]}, None, 5, []]
)
def test_a_spec_without_a_field_that_has_no_default_names_no_host(spec):
    assert DEFAULT_IDENTITIES.of(*REMOTE, spec) is None


@pytest.mark.parametrize("kind", ["AWSMachine", "remotemachine"])
def test_a_kind_that_is_not_listed_names_no_host(kind):
    assert DEFAULT_IDENTITIES.of(REMOTE[0], kind, {"address": "192.0.2.7"}) is None
    assert DEFAULT_IDENTITIES.of("k0smotron.io/v1beta1", "RemoteMachine", {"address": "192.0.2.7"}) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (22, "22"),
        ("Host.Example.COM.", "host.example.com"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("\t192.0.2.7\n", "192.0.2.7"),
    ],
)
def test_values_are_compared_as_a_provider_reads_them(one, other):
    assert canonical(one) == canonical(other) is not None


@pytest.mark.parametrize("value", [None, "", "  ", ".", True, [], {}, {"a": 1}])
def test_what_is_no_name_has_no_form(value):
    assert canonical(value) is None


def test_fields_may_lie_deeper_and_several_kinds_be_listed():
    listed = HostIdentities.parse("Metal.example.com: network.address ,slot=0;\n Other.example.com:id\n")
    one = listed.of("example.com/v1", "Metal", {"network": {"address": "a"}})
    assert one == listed.of("example.com/v1", "Metal", {"network": {"address": "A"}, "slot": 0}) is not None
    assert listed.of("example.com/v1", "Metal", {"network": "a"}) is None
    assert listed.of("example.com/v1", "Other", {"id": 7}) not in (None, one)
    assert HostIdentities.parse("").kinds == {}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("RemoteMachine: address", "'RemoteMachine' must be Kind.group"),
        ("address", "'address' must be Kind.group"),
        ("Metal.example.com", "Metal.example.com: '' must be a field"),
        ("Metal.example.com: a,,b", "Metal.example.com: '' must be a field"),
        ("Metal.example.com: a..b", "'a..b' must be a field"),
        ("Metal.example.com: port=", "the default of port is empty"),
        ("Metal.example.com: a; Metal.example.com: b", "Metal.example.com is listed twice"),
    ],
)
def test_a_setting_that_cannot_be_read_is_refused_with_the_reason(text, complaint):
    with pytest.raises(ValueError, match=complaint.replace(".", r"\.")):
        HostIdentities.parse(text)


def test_only_hashes_of_hosts_are_compared():
    assert recorded(of(address="a")) == of(address="a")
    assert recorded("0123456789abcdef0123456789abcdef") is recorded(None) is None


def test_the_host_of_a_machine_is_the_one_that_its_infrastructure_object_names():
    edited = spec(infrastructureSpec={**SPEC["infrastructureSpec"], "spec": {"address": "192.0.2.9"}})
    there = child(Role.INFRASTRUCTURE, spec={"address": "192.0.2.8"})
    assert host_of(DEFAULT_IDENTITIES, edited, running_world(infrastructure=there)) == of(address="192.0.2.8")
    assert host_of(DEFAULT_IDENTITIES, edited, running_world(infrastructure=None)) is None
    assert host_of(DEFAULT_IDENTITIES, edited, world()) == of(address="192.0.2.9")
    assert host_of(DEFAULT_IDENTITIES, None, world()) is None
