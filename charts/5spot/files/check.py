"""What `helm test` runs: every replica delivers metrics, every shard is held once, and the webhooks answer over TLS."""

import json
import os
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections import Counter

PATIENCE = float(os.environ.get("PATIENCE_SECONDS", "60"))
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "helm-test",
        "kind": {"group": "5spot.finos.org", "version": "v1alpha1", "kind": "ScheduledMachine"},
        "resource": {"group": "5spot.finos.org", "version": "v1alpha1", "resource": "scheduledmachines"},
        "name": "helm-test",
        "namespace": "helm-test",
        "operation": "CREATE",
        "userInfo": {"username": "helm-test"},
        "object": {
            "apiVersion": "5spot.finos.org/v1alpha1",
            "kind": "ScheduledMachine",
            "metadata": {"name": "helm-test", "namespace": "helm-test"},
            "spec": {"schedule": {"hoursOfDay": ["25"]}},
        },
    },
}


def metrics(host: str, port: int) -> Counter[str]:
    """How many replicas hold each shard."""
    held: Counter[str] = Counter()
    for address in sorted({str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}):
        place = f"[{address}]" if ":" in address else address
        with urllib.request.urlopen(f"http://{place}:{port}/metrics", timeout=5) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("fivespot_shard_held{"):
                    name, _, value = line.rpartition(" ")
                    held[name] += int(float(value))
    return held


def verdict(url: str) -> bool:
    """Whether the webhook refuses an invalid object; API servers verify its certificate, this check does not."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(REVIEW).encode(), headers)
    with urllib.request.urlopen(request, timeout=5, context=context) as answer:
        return not json.load(answer)["response"]["allowed"]


def complaint() -> str | None:
    """What is wrong, or None."""
    try:
        held = metrics(os.environ["METRICS_HOST"], int(os.environ.get("METRICS_PORT", "8080")))
        wrong = {shard: count for shard, count in held.items() if count != 1}
        if (not held or wrong) and not os.environ.get("WITHOUT_LEASES"):
            return f"not every shard is held by one replica: {wrong or 'there are none'}"
        url = os.environ.get("WEBHOOK_URL")
        if url and not verdict(url):
            return "the webhooks let an invalid object pass"
    except (OSError, ValueError, KeyError, urllib.error.URLError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def main() -> int:
    """Checks until nothing is wrong or the time is up."""
    until = time.monotonic() + PATIENCE
    while (wrong := complaint()) and time.monotonic() < until:
        time.sleep(1)
    sys.stdout.write(f"{wrong or 'all is well'}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
