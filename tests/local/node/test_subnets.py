"""The node's bridge gets a subnet that no route of the machine leads to."""

from ipaddress import IPv4Network

import pytest

from local.errors import LocalError
from local.node.subnets import CANDIDATES, free


def test_the_first_candidate_is_taken_where_nothing_is_in_the_way():
    subnet = free([IPv4Network("192.0.2.0/24")])
    assert subnet.network == CANDIDATES[0]
    assert subnet.bridge_with_prefix == "10.231.0.1/24"


def test_a_candidate_that_a_route_overlaps_is_passed_over():
    assert free([IPv4Network("10.231.0.0/16")]).network == CANDIDATES[1]


@pytest.mark.parametrize("taken", ["10.0.0.0/8", "10.96.4.0/24"])
def test_without_room_the_error_says_what_is_in_the_way(taken: str):
    with pytest.raises(LocalError, match="route"):
        free([IPv4Network(taken)])
