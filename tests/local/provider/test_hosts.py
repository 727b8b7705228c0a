"""Hosts: one address is one host, whichever object names it."""

from typing import Any

import pytest

from local.provider.hosts import Host


def remote(name: str, namespace: str = "default", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def test_two_remote_machines_with_one_address_are_one_host() -> None:
    one, other = Host.of(remote("a", address="192.168.1.100")), Host.of(remote("b", "x", address="192.168.1.100"))
    assert (one.name, one.provider_id) == (other.name, other.provider_id)
    assert (one.name, one.provider_id) == ("host-192-168-1-100", "remote-machine://192.168.1.100")


def test_remote_machines_without_an_address_are_hosts_of_their_own() -> None:
    names = {Host.of(remote(name, namespace)).name for name in "ab" for namespace in ("x", "y")}
    assert len(names) == 4


@pytest.mark.parametrize("address", ["Rack-1.Example", "fe80::1%eth0", "a" * 200, "-.-", "ünïcode"])
def test_every_address_makes_a_name_that_a_node_can_have(address: str) -> None:
    name = Host.of(remote("a", address=address)).name
    assert len(name) <= 63
    assert name == name.lower().strip("-.")
    assert all(c.isascii() and (c.isalnum() or c == "-") for c in name)


def test_long_addresses_that_begin_alike_are_still_different_hosts() -> None:
    one, other = (Host.of(remote("a", address="rack." * 20 + end)) for end in "xy")
    assert one.name != other.name


def test_the_node_carries_what_cluster_api_and_the_agent_compare() -> None:
    node = Host.of(remote("a", address="10.0.0.7")).node("0123abcd")
    assert node["spec"]["providerID"] == "remote-machine://10.0.0.7"
    assert node["status"]["nodeInfo"]["machineID"] == "0123abcd"
