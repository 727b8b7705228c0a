import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.clock import SimulatedClock, SystemClock
from service.decide.hosts import DEFAULT_IDENTITIES
from service.settings import (
    InvalidSettingsError,
    Settings,
    add_flags,
    from_flags,
    reference,
    variables,
)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, field in Settings.model_fields.items():
        for variable in variables(name, field):
            monkeypatch.delenv(variable, raising=False)


def read(*words: str) -> Settings:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    return from_flags(parser.parse_args(words))


def test_the_ports_are_those_that_are_documented():
    settings = read()
    assert (settings.webhook_port, settings.health_port, settings.metrics_port) == (9443, 8081, 8080)


def test_a_flag_wins_over_the_environment_and_that_over_the_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FIVESPOT_HEALTH_PORT", "1111")
    assert read().health_port == 1111
    assert read("--health-port", "2222").health_port == 2222


def test_every_setting_has_a_flag_a_variable_and_a_description():
    parser = argparse.ArgumentParser()
    add_flags(parser)
    shown = parser.format_help()
    for name, field in Settings.model_fields.items():
        assert f"--{name.replace('_', '-')}" in shown
        assert field.description
        assert field.description.endswith(".")
        assert (
            variables(name, field)[0] in shown.replace("\n", "").replace(" ", "") or variables(name, field)[0] in shown
        )


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FIVESPOT_NAMESPACES", "team-a, team-b,,")
    assert read().namespaces == ("team-a", "team-b")
    assert read("--namespaces", "x").namespaces == ("x",)


def test_the_operators_own_names_for_shards_are_understood(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPERATOR_INSTANCE_COUNT", "4")
    monkeypatch.setenv("OPERATOR_INSTANCE_ID", "3")
    settings = read()
    assert (settings.instance_count, settings.preferred_shard) == (4, 3)


@pytest.mark.parametrize(("host", "shard"), [("fivespot-2", 2), ("fivespot-7", 3), ("laptop", None), ("a-b", None)])
def test_without_an_id_the_hosts_ordinal_says_which_shard(
    monkeypatch: pytest.MonkeyPatch, host: str, shard: int | None
):
    monkeypatch.setattr("socket.gethostname", lambda: host)
    assert read("--instance-count", "4").preferred_shard == shard


def test_the_only_shard_is_every_replicas_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("socket.gethostname", lambda: "5spot-767d9f4b9-ls2ts")
    assert read().preferred_shard == 0


def test_the_pods_namespace_is_ours(monkeypatch: pytest.MonkeyPatch):
    assert read().namespace == "5spot-system"
    monkeypatch.setenv("POD_NAMESPACE", "elsewhere")
    assert read().namespace == "elsewhere"
    assert "fivespot-webhook.elsewhere.svc" in read().certificate_names


def test_a_kubeconfig_may_come_from_the_usual_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", "/a/config")
    assert read().kubeconfig == Path("/a/config")
    monkeypatch.setenv("FIVESPOT_KUBECONFIG", "/b/config")
    assert read().kubeconfig == Path("/b/config")


def test_an_empty_variable_for_the_kubeconfig_counts_as_unset(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", "")
    assert read().kubeconfig is None
    monkeypatch.setenv("FIVESPOT_KUBECONFIG", "")
    monkeypatch.setenv("KUBECONFIG", "/a/config")
    assert read().kubeconfig == Path("/a/config")


@pytest.mark.parametrize(
    ("flag", "webhooks"),
    [("--webhooks", True), ("--no-webhooks", False), ("--webhooks=true", True), ("--webhooks=False", False)],
)
def test_a_switch_is_set_as_people_write_it(flag: str, *, webhooks: bool):
    assert read(flag).webhooks is webhooks


def test_a_switch_takes_nothing_but_true_and_false(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        read("--webhooks=off")
    assert "argument --webhooks: 'off' is neither true nor false" in capsys.readouterr().err


def test_the_allowlist_becomes_the_policy():
    policy = read("--bootstrap-groups", "example.org", "--refused-kinds", "").policy
    assert policy.bootstrap_groups == {"example.org"}
    assert policy.refused_kinds == ()
    assert "k0smotron.io" in policy.infrastructure_groups


def test_what_a_host_is_can_be_set_and_is_checked():
    assert read().host_identities == DEFAULT_IDENTITIES
    assert read("--host-identity", "").host_identities.kinds == {}
    listed = read("--host-identity", "Metal.example.com: network.address, slot=0").host_identities
    assert list(listed.kinds) == [("example.com", "Metal")]
    with pytest.raises(InvalidSettingsError, match=r"--host-identity .*'metal' must be Kind\.group"):
        read("--host-identity", "metal: address")


def test_webhooks_can_be_switched_off():
    assert read().webhooks
    assert not read("--no-webhooks").webhooks


def test_time_is_real_unless_simulated():
    assert isinstance(read().clock(), SystemClock)
    clock = read("--at", "2026-03-08T07:00:00Z", "--speed", "60").clock()
    assert isinstance(clock, SimulatedClock)
    assert clock.now() - datetime(2026, 3, 8, 7, tzinfo=UTC) < timedelta(minutes=10)
    assert isinstance(read("--speed", "10").clock(), SimulatedClock)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--health-port", "http"), r"--health-port \(FIVESPOT_HEALTH_PORT\): .*not 'http'"),
        (("--health-port", "70000"), "--health-port"),
        (("--log-level", "loud"), "'debug', 'info', 'warning' or 'error', not 'loud'"),
        (("--at", "2026-03-08T07:00:00"), "--at"),
        (("--speed", "0"), "--speed"),
        (("--certificates", "files"), "certificates=files needs certificate_file and key_file"),
        (("--instance-id", "2", "--instance-count", "2"), "instance_id must be less than instance_count, 2"),
        (("--workers", "0", "--speed", "-1"), "--workers.*; --speed"),
        (("--lease-renew-seconds", "20"), "lease_renew_seconds, that less than lease_seconds"),
        (("--lease-renew-seconds", "14.5"), "lease_seconds must be at least a second more than lease_renew_seconds"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_flag(words: tuple[str, ...], says: str):
    with pytest.raises(InvalidSettingsError, match=says):
        read(*words)


def test_the_reference_page_lists_every_setting_with_its_default():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "settings.md").read_text()
    assert page.endswith(reference())


@pytest.mark.parametrize(
    "source", ["/5spot", "5spot/a?b=c#d", "urn:uuid:6e8bc430", "https://[::1]:8443/%C3%A9", "//example.org/5spot", "#a"]
)
def test_the_source_of_notifications_is_any_uri_reference(source: str):
    assert read("--notify-source", source).notify_source == source


@pytest.mark.parametrize("source", ["my operator", "/é", "/%zz", "5:spot", "a#b#c", "/a\n", "/<a>", "/[a]", "/a\\b"])
def test_a_source_of_notifications_that_is_no_uri_reference_is_refused_with_a_sentence(source: str):
    with pytest.raises(InvalidSettingsError, match=r"notify.source.*must be a URI reference \(RFC 3986\), such as "):
        read("--notify-source", source)
