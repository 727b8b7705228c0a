"""Restarts, a frozen leader and an API server that is away, on a real node."""

import os
import signal
import time

from tests.charts.helm import NAMESPACE
from tests.cluster.applies import applying
from tests.cluster.site import Raw, Site, eventually, is_ready, processes_of

OUTAGE = 20.0


def test_a_rolling_restart_refuses_no_request(release: Site):
    with applying(release) as applies:
        release.kubectl("rollout", "restart", "deployment/5spot", f"-n={NAMESPACE}")
        release.kubectl("rollout", "status", "deployment/5spot", f"-n={NAMESPACE}", patience=180)
        release.settled()  # replaced pods answer until API servers know of others
    assert applies.refused == []
    assert applies.done > 10


def test_another_replica_takes_over_from_a_frozen_one_which_is_restarted_without_waiting_out_its_grace(release: Site):
    release.settled()
    holder = eventually(lambda: leader(release))
    frozen = time.monotonic()
    os.kill(processes_of(pod_named(release, holder))[0], signal.SIGSTOP)
    eventually(lambda: leader(release) not in {"", holder}, within=40)
    eventually(lambda: restarts(pod_named(release, holder)) == 1, within=70)
    assert time.monotonic() - frozen < 60, "the liveness probe takes 30 s, its own grace 5"
    eventually(lambda: is_ready(pod_named(release, holder)))


def test_an_api_server_that_is_away_restarts_no_pod(release: Site):
    before = {pod["metadata"]["name"]: restarts(pod) for pod in release.settled()}
    release.cluster.apiserver.stop()
    time.sleep(OUTAGE)  # a real outage: probes and leases run on real time
    release.cluster.apiserver.started()
    # Where leases are used, both end when they lose their own, and are started again; else they back off for a minute.
    release.cluster.controller_manager.restart()
    release.node.plane.capi.restart()
    eventually(lambda: leader(release))
    with applying(release) as applies:
        eventually(lambda: applies.done > 5)
    assert applies.refused == []
    assert {pod["metadata"]["name"]: restarts(pod) for pod in release.settled()} == before


def leader(site: Site) -> str:
    """The pod that holds the only shard; empty if none does."""
    lease = site.get("lease", "5spot-shard-0-of-1", f"-n={NAMESPACE}")
    holder = str(lease.get("spec", {}).get("holderIdentity") or "")
    return next((name for name in (pod["metadata"]["name"] for pod in site.pods()) if holder.startswith(name)), "")


def pod_named(site: Site, name: str) -> Raw:
    return site.get("pod", name, f"-n={NAMESPACE}")


def restarts(pod: Raw) -> int:
    return int(pod["status"]["containerStatuses"][0]["restartCount"])
