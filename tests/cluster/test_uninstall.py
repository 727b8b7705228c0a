"""The release goes: what stays is the users' own, and nothing refuses their requests."""

from tests.cluster.site import Raw, Site, eventually
from tests.e2e.manifests import machine

CLOSED: Raw = {"cron": "0 0 29 2 *"}


def test_an_uninstallation_leaves_users_objects_and_nothing_that_refuses_them(release: Site):
    release.apply(machine("kept", schedule={"daysOfWeek": ["mon-sun"], "enabled": False}))
    release.uninstall()
    release.apply(machine("kept", schedule=CLOSED))
    eventually(lambda: not release.pods())  # they go after the Deployment, which is all that Helm waits for
    patch = '{"metadata":{"finalizers":null}}'
    release.kubectl("patch", "scheduledmachine", "kept", "--type=merge", f"-p={patch}")
    release.kubectl("delete", "scheduledmachine", "kept")
