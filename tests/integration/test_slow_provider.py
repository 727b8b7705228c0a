"""A provider whose admission webhook hangs holds up its own machines; one whose admission says no is quoted."""

import asyncio
import base64
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
import pytest

from local import access
from local.crds import apply
from local.pki import Authority
from local.provider.kinds import MACHINES
from service.kube import errors
from service.kube.errors import KubeError
from service.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SCHEDULED_MACHINES, VALIDATING_WEBHOOKS, Resource
from tests.e2e.manifests import EIGHT, NINE, condition, machine, says
from tests.integration.guarded import guarded, home
from tests.waiting import until
from tests.watching import until_gone

SLOW = Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "slowmachines", "SlowMachine")
POLICIES = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    namespaced=False,
)
BINDINGS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
HANG_SECONDS = 6
CROWD = 48
RULE = {
    "apiGroups": [SLOW.group],
    "apiVersions": ["*"],
    "resources": [SLOW.plural],
    "operations": ["CREATE"],
}
DENIED = {"allowed": False, "status": {"code": 403, "reason": "Forbidden", "message": "no such rack"}}


class Webhook:
    """A provider's admission webhook: it hangs until a test sets its answer."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] | None = None
        self.asked = 0
        self._answered = asyncio.Event()
        self._connections: set[asyncio.StreamWriter] = set()

    def answers(self, **response: Any) -> None:
        self.answer = response
        self._answered.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
                review = orjson.loads(await reader.readexactly(length))
                self.asked += 1
                await self._answered.wait()
                writer.write(self._reply(review))
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass

    async def hang_up(self) -> None:
        self.answers(allowed=True)
        for writer in self._connections:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _reply(self, review: dict[str, Any]) -> bytes:
        response = {"uid": review["request"]["uid"], **(self.answer or {})}
        body = orjson.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        return head.encode() + body


@asynccontextmanager
async def webhook_of(client, namespace, tmp_path) -> AsyncIterator[Webhook]:
    """The webhook, in force for that namespace."""
    authority, made = Authority.create("provider"), Webhook()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.serving("provider").write(tmp_path))
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    hook = {
        "name": "slow.provider.example",
        "clientConfig": {
            "url": f"https://127.0.0.1:{port}/validate",
            "caBundle": base64.b64encode(authority.pem).decode(),
        },
        "rules": [RULE],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": HANG_SECONDS,
    }
    body = {**VALIDATING_WEBHOOKS.envelope(), "metadata": {"name": namespace}, "webhooks": [hook]}
    await client.create(VALIDATING_WEBHOOKS, body)
    try:
        yield made
    finally:
        await client.delete(VALIDATING_WEBHOOKS, namespace)
        server.close()
        await made.hang_up()


@pytest.fixture
async def admin(audited):
    async with audited.client() as client:
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        version = {"name": SLOW.version, "served": True, "storage": True, "schema": schema}
        words = {"kind": SLOW.kind, "plural": SLOW.plural, "singular": "slowmachine", "listKind": "SlowMachineList"}
        spec = {"group": SLOW.group, "scope": "Namespaced", "names": words, "versions": [version]}
        definition = {**CUSTOM_RESOURCE_DEFINITIONS.envelope(), "metadata": {"name": SLOW.label}, "spec": spec}
        await apply(client, definition)
        yield client
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, SLOW.label)
        await until_gone(client, CUSTOM_RESOURCE_DEFINITIONS, SLOW.label)


async def submit(client, namespace, name, hours, *, slow=False):
    body = machine(name, infrastructure={"address": f"{name}.{namespace}"}, schedule={"hoursOfDay": [hours]})
    if slow:
        body["spec"]["infrastructureSpec"] = {**SLOW.envelope(), "spec": {"address": f"{name}.{namespace}"}}
    await client.create(SCHEDULED_MACHINES, body, namespace=namespace)


async def is_probed(client, namespace):
    """Whether the API server asks the webhook already: it learns of its configuration a moment later."""
    probe = {**SLOW.envelope(), "metadata": {"generateName": "probe-"}}
    try:
        async with asyncio.timeout(0.5):
            await client.create(SLOW, probe, namespace=namespace, dry_run=True)
    except TimeoutError:
        return True
    return False


async def test_a_webhook_that_hangs_holds_up_neither_a_kill_switch_nor_a_removal(audited, admin, tmp_path):
    namespace = await home(admin, "slow")
    gone: dict[str, float] = {}

    async def note_end(name):
        await until_gone(admin, MACHINES, f"{name}-machine", namespace=namespace, within=60.0)
        gone[name] = time.monotonic()

    async with webhook_of(admin, namespace, tmp_path) as webhook, guarded(audited, (namespace,), EIGHT) as op:
        await until(lambda: is_probed(admin, namespace))
        await submit(admin, namespace, "killed", "0-23")
        await submit(admin, namespace, "ends", "8")
        for number in range(CROWD):
            await submit(admin, namespace, f"slow-{number}", "9-17", slow=True)
        await until(lambda: (op.phases("Active"), op.phases("Inactive")) == (2, CROWD))
        asked = webhook.asked
        ends = [asyncio.create_task(note_end(name)) for name in ("killed", "ends")]

        closed = time.monotonic()
        op.clock.move_to(NINE)
        half = op.controller._shared.settings.workers // 2
        await until(lambda: webhook.asked - asked >= half)
        killed = time.monotonic()
        await admin.patch(SCHEDULED_MACHINES, "killed", {"spec": {"killSwitch": True}}, namespace=namespace)
        await asyncio.gather(*ends)
        assert gone["killed"] - killed < HANG_SECONDS / 3
        assert gone["ends"] - closed < HANG_SECONDS / 3
        assert webhook.asked - asked == half
        await until(lambda: op.phases("Pending") == CROWD - half)
        statuses = [await op.status(namespace, f"slow-{number}") for number in range(CROWD)]
        reasons = Counter(condition(status, "Ready")["reason"] for status in statuses)
        assert reasons["WaitingForProvider"] == CROWD - half

        webhook.answers(allowed=True)
        await until(lambda: op.phases("Active") == CROWD, within=60.0)


async def test_the_denial_of_a_webhook_is_reported_in_its_own_words(audited, admin, tmp_path):
    namespace = await home(admin, "denied")
    async with webhook_of(admin, namespace, tmp_path) as webhook, guarded(audited, (namespace,), NINE) as op:
        await until(lambda: is_probed(admin, namespace))
        webhook.answers(**DENIED)
        await submit(admin, namespace, "worker", "9-17", slow=True)
        status = await op.until(namespace, "worker", lambda status: status.get("phase") == "Error")
        assert says(status, "Ready", "False", "ProviderRejected")
        assert says(status, "ReferencesValid", "False", "ProviderRejected")
        assert "no such rack" in condition(status, "Ready")["message"]


async def refusal(client, namespace) -> KubeError:
    try:
        await client.create(SLOW, {**SLOW.envelope(), "metadata": {"name": "x"}}, namespace=namespace, dry_run=True)
    except KubeError as error:
        return error
    return KubeError("not refused")


async def test_a_denial_by_a_policy_is_distinguished_from_a_missing_permission(audited, admin):
    namespace = await home(admin, "policy")
    async with audited.client(access.CONTROLLER_MANAGER) as manager:
        assert type(await refusal(manager, namespace)) is errors.Forbidden
    policy = {
        **POLICIES.envelope(),
        "metadata": {"name": namespace},
        "spec": {
            "matchConstraints": {"resourceRules": [RULE]},
            "validations": [{"expression": "false", "message": "no such rack", "reason": "Forbidden"}],
        },
    }
    selected = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    binding = {
        **BINDINGS.envelope(),
        "metadata": {"name": namespace},
        "spec": {"policyName": namespace, "validationActions": ["Deny"], "matchResources": selected},
    }
    await admin.create(POLICIES, policy)
    await admin.create(BINDINGS, binding)

    async def refused():
        error = await refusal(admin, namespace)
        return error if error.status else None

    try:
        error = await until(refused)
    finally:
        await admin.delete(BINDINGS, namespace)
        await admin.delete(POLICIES, namespace)
    assert (type(error), error.status) == (errors.Denied, 403)
    assert "no such rack" in error.message
