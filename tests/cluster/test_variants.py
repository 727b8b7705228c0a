"""The chart's larger choices on a real node: each is installed, checked by `helm test`, and removed again.

One pod each: how many there are makes no difference to these. The agent alone is in `test_agent.py`, a change of the
certificates' source in `test_switches.py`.
"""

import json

import pytest

from local.pki import Authority
from tests.charts.helm import NAMESPACE
from tests.charts.kinds import CERTIFICATES, ISSUERS, open_definition
from tests.cluster.certificates import authorities_of, secret_of
from tests.cluster.site import Raw, Refused, Site, installed
from tests.e2e.manifests import machine

CLOSED: Raw = {"cron": "0 0 29 2 *"}
WRONG = machine("wrong", schedule={"hoursOfDay": ["25"]})


def test_only_some_namespaces(site: Site):
    site.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    with installed(site, {"replicas": 1, "watchNamespaces": ["team"]}):
        site.checked()
        with pytest.raises(Refused, match="hoursOfDay"):
            site.apply(WRONG, namespace="team")
        site.apply(machine("elsewhere", schedule=CLOSED), namespace="default")
        assert "finalizers" not in site.get("scheduledmachine", "elsewhere")["metadata"]
        site.kubectl("delete", "scheduledmachine", "elsewhere")


def test_policies_instead_of_webhooks(site: Site):
    with installed(site, {"replicas": 1, "webhooks": {"enabled": False}}):
        site.checked()
        with pytest.raises(Refused, match="hoursOfDay"):
            site.apply(WRONG)


def test_certificates_from_files_only(site: Site):
    """cert-manager cannot be built here: the test makes the Secret in its place, before its Certificate is there."""
    for kind in (CERTIFICATES, ISSUERS):
        site.apply(open_definition(kind))
    issuer = Authority.create("issuer")
    site.apply(secret_of(issuer), namespace=NAMESPACE)
    with installed(site, {"replicas": 1, "webhooks": {"certificates": "cert-manager"}}):
        site.checked()
        assert authorities_of(site) == {issuer.pem}
        with pytest.raises(Refused, match="hoursOfDay"):
            site.apply(WRONG)
    site.kubectl("delete", "secret", "5spot-webhook-tls", f"-n={NAMESPACE}")


LOG_IN = """
import json, sys, urllib.request
from http.cookiejar import CookieJar
browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
origin = "http://localhost:8082"
def ask(path, body=None):
    headers = {"Origin": origin, "Content-Type": "application/json"} if body else {}
    asked = urllib.request.Request(origin + path, json.dumps(body).encode() if body else None, headers)
    return json.load(browser.open(asked, timeout=30))
ask("/login", {"token": sys.argv[1]})
print(json.dumps(ask("/api/session")))
"""


def test_a_console_that_has_no_token_shows_users_what_they_may_see(site: Site):
    with installed(site, {"console": {"enabled": True, "origins": ["http://localhost:8082"]}}):
        site.checked()
        inside = ("exec", f"-n={NAMESPACE}", "deployment/5spot-console", "--")
        with pytest.raises(Refused, match="No such file"):
            site.kubectl(*inside, "ls", "/var/run/secrets/kubernetes.io")
        token = site.kubectl("create", "token", "default", "-n=default").strip()
        session = json.loads(site.kubectl(*inside, "python3", "-c", LOG_IN, token))
        assert session["user"] == "system:serviceaccount:default:default"
        assert "ScheduledMachine" in session["unread"]
