"""Changes of the chart's values while a user applies without a pause: not one request may be refused."""

from collections.abc import Iterator

import pytest

from tests.cluster.applies import applying
from tests.cluster.site import Site, installed


@pytest.fixture
def release(site: Site) -> Iterator[Site]:
    with installed(site):
        yield site


def test_between_one_shard_and_two(release: Site):
    with applying(release) as applies:
        release.install({"shards": 2})
        release.install({"shards": 1})
    assert applies.refused == []
    assert applies.done > 20
