"""A cluster that nothing of ours was ever installed in."""

from collections.abc import Iterator

import pytest

from local import capi
from local.binaries import Assets
from local.cluster import LocalCluster, Options
from tests.charts.kinds import OTHERS, open_definition
from tests.conftest import kept

SETS = ("ClusterResourceSet",)


@pytest.fixture(scope="package")
def bare(assets: Assets, pytestconfig: pytest.Config) -> Iterator[LocalCluster]:
    """Without our CRD, with the kinds of others that the chart can make; for the tests of the chart only."""
    sets = [crd for crd in capi.load_definitions(assets.capi_crds) if crd["spec"]["names"]["kind"] in SETS]
    definitions = (*map(open_definition, OTHERS), *sets)
    with (
        kept(pytestconfig) as keeper,
        LocalCluster("bare", assets, keeper, Options(definitions=definitions)) as cluster,
    ):
        yield cluster
