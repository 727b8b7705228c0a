import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crds import names
from tests.webhooks.reviews import UID, machine, review
from webhooks.answers import Answer
from webhooks.body import DROP_LIMIT
from webhooks.review import BODY_LIMIT, Review
from webhooks.routes import create_app
from webhooks.verdict import Gate

PATHS = (names.VALIDATE_PATH, names.MUTATE_PATH)


class Tally:
    """Counts what was answered."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.timed: list[tuple[str, int]] = []

    def answered(self, webhook: str, outcome: str, fields: tuple[str, ...]) -> None:
        self.seen.append((webhook, outcome))

    def took(self, path: str, status: int, seconds: float) -> None:
        self.timed.append((path, status))


@pytest.fixture
def tally() -> Tally:
    return Tally()


@pytest.fixture
async def client(tally: Tally) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(Gate(), tally))
    async with httpx.AsyncClient(transport=transport, base_url="https://webhooks") as client:
        yield client


def well_formed(answer: httpx.Response) -> dict[str, Any]:
    """The response part of an answer, which must be an AdmissionReview whatever was asked."""
    body = orjson.loads(answer.content)
    assert answer.status_code < 500
    assert body["apiVersion"] == "admission.k8s.io/v1"
    assert body["kind"] == "AdmissionReview"
    assert "Traceback" not in answer.text
    response: dict[str, Any] = body["response"]
    assert isinstance(response["uid"], str)
    if not response["allowed"]:
        assert response["status"]["status"] == "Failure"
        assert response["status"]["message"].isprintable()
    return response


async def test_both_webhooks_answer_a_good_object(client: httpx.AsyncClient, tally: Tally):
    for path in PATHS:
        answer = await client.post(path, content=orjson.dumps(review(machine())))
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert well_formed(answer)["allowed"] is True
    assert tally.seen == [("validate", "allowed"), ("default", "defaulted")]
    assert tally.timed == [(path, 200) for path in PATHS]


async def test_a_bad_object_is_an_ordinary_answer(client: httpx.AsyncClient, tally: Tally):
    answer = await client.post(names.VALIDATE_PATH, content=orjson.dumps(review(machine(priority=999))))
    assert answer.status_code == 200
    assert well_formed(answer)["status"]["code"] == 422
    assert tally.seen == [("validate", "invalid")]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe\x00", 400),
        (b"[" * 10_000, 400),
        (b"[" * 1_000_000, 413),
        (b'{"request":' * 200_000, 413),
        (b"\x00" * 1000, 400),
        (b'{"request":{"uid":"a\nb"}}', 400),
        (b"x" * BODY_LIMIT, 413),
        (b"x" * (DROP_LIMIT + 1), 413),
    ],
    ids=["empty", "cut", "not UTF-8", "deep list", "deeper list", "deep object", "NULs", "newline", "3 MiB", "16 MiB"],
)
async def test_nonsense_is_refused_in_form(client: httpx.AsyncClient, path: str, body: bytes, code: int):
    answer = await client.post(path, content=body)
    assert answer.status_code == code
    response = well_formed(answer)
    assert response["allowed"] is False
    assert response["status"]["code"] == code


async def test_a_review_with_a_uid_is_refused_under_it_so_that_the_reason_reaches_the_user(client: httpx.AsyncClient):
    wrong = review(machine()) | {"apiVersion": "admission.k8s.io/v1beta1"}
    answer = await client.post(names.VALIDATE_PATH, content=orjson.dumps(wrong))
    assert answer.status_code == 200
    assert well_formed(answer)["uid"] == UID


async def test_another_kind_is_refused(client: httpx.AsyncClient):
    pod = review(machine(), kind={"group": "", "version": "v1", "kind": "Pod"})
    response = well_formed(await client.post(names.VALIDATE_PATH, content=orjson.dumps(pod)))
    assert response["allowed"] is False
    assert "only ScheduledMachine" in response["status"]["message"]


async def test_a_large_but_legal_object_is_judged(client: httpx.AsyncClient):
    given = machine()
    given["spec"]["bootstrapSpec"]["spec"]["files"] = "x" * 1_400_000
    answer = await client.post(names.VALIDATE_PATH, content=orjson.dumps(review(given, old=given)))
    assert well_formed(answer)["allowed"] is True


@pytest.mark.parametrize("depth", [100, 1000])
async def test_nesting_inside_a_providers_spec_is_none_of_our_business(
    client: httpx.AsyncClient, tally: Tally, depth: int
):
    nested = b'{"a":' * depth + b"{}" + b"}" * depth
    given = machine()
    given["spec"]["bootstrapSpec"]["spec"] = {"nested": "here"}
    body = orjson.dumps(review(given, old=given)).replace(b'{"nested":"here"}', nested)
    for path in PATHS:
        assert well_formed(await client.post(path, content=body))["allowed"] is True


async def test_a_body_in_many_pieces_is_put_together(client: httpx.AsyncClient):
    body = orjson.dumps(review(machine()))

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 7):
            yield body[start : start + 7]

    assert well_formed(await client.post(names.VALIDATE_PATH, content=pieces()))["allowed"] is True


async def test_an_endless_body_is_cut_off_and_not_kept():
    sent = 0

    async def receive() -> dict[str, Any]:
        nonlocal sent
        sent += 1
        return {"type": "http.request", "body": b"x" * 65536, "more_body": True}

    tracemalloc.start()
    status, _ = await call(create_app(Gate(), Tally()), receive)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert status == 413
    assert sent == DROP_LIMIT // 65536
    assert peak < 2 * BODY_LIMIT


async def test_a_body_that_does_not_arrive_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("webhooks.body.BODY_SECONDS", 0.01)
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}])

    async def receive() -> dict[str, Any]:
        for message in messages:
            return message
        return await asyncio.Future()

    status, body = await call(create_app(Gate(), Tally()), receive)
    assert status == 408
    assert orjson.loads(body)["response"]["allowed"] is False


async def test_a_client_that_hangs_up_is_no_error():
    messages: Iterator[dict[str, Any]] = iter(
        [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    )

    async def receive() -> dict[str, Any]:
        return next(messages)

    status, _ = await call(create_app(Gate(), Tally()), receive)
    assert status == 400


async def test_a_rule_that_fails_keeps_the_object_out_and_says_nothing_of_its_insides(tally: Tally):
    class Broken(Gate):
        def validate(self, review: Review) -> Answer:
            raise RuntimeError("the password is swordfish")

    transport = httpx.ASGITransport(create_app(Broken(), tally))
    async with httpx.AsyncClient(transport=transport, base_url="https://webhooks") as client:
        answer = await client.post(names.VALIDATE_PATH, content=orjson.dumps(review(machine())))
    assert answer.status_code == 200
    response = well_formed(answer)
    assert (response["uid"], response["allowed"], response["status"]["code"]) == (UID, False, 500)
    assert "swordfish" not in answer.text
    assert tally.seen == [("validate", "internal_error")]


async def test_only_post_is_understood_and_nothing_else_is_served(client: httpx.AsyncClient):
    assert (await client.get(names.VALIDATE_PATH)).status_code == 405
    for path in ("/", "/docs", "/openapi.json", "/redoc"):
        assert (await client.get(path)).status_code == 404


async def call(app: Any, receive: Any, path: str = names.VALIDATE_PATH) -> tuple[int, bytes]:
    """One request on the bare ASGI interface."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
        "http_version": "1.1",
        "scheme": "https",
        "root_path": "",
    }
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


texts = st.sampled_from(
    [
        "",
        "mon-fri",
        "9-17",
        "UTC",
        "\x00",
        "a\nb",
        "\u202e",
        "²",
        "٣",
        "*" * 300,
        "0 0 30 2 *",
        "1h30m",
        "é",
        "K0sWorkerConfig",
    ]
) | st.text(st.characters(codec="utf-8"), max_size=8)
keys = st.sampled_from(
    [
        *("metadata", "spec", "status", "schedule", "daysOfWeek", "hoursOfDay", "cron", "duration", "timezone"),
        *("enabled", "bootstrapSpec", "infrastructureSpec", "apiVersion", "kind", "namespace", "machineTemplate"),
        *("labels", "annotations", "clusterName", "priority", "gracefulShutdownTimeout", "nodeDrainTimeout"),
        *("killSwitch", "killIfCommands", "nodeTaints", "key", "value", "effect", "name", "deletionTimestamp"),
        *("provisioningTimeout",),
    ]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys | texts, inner, max_size=4),
    max_leaves=12,
)
pieces = st.lists(st.tuples(st.lists(keys, min_size=1, max_size=3), anything), min_size=1, max_size=4)


def mangled(changes: list[tuple[list[str], Any]]) -> dict[str, Any]:
    """A good object with some of its parts replaced by anything at all."""
    given = machine(nodeTaints=[{"key": "a", "effect": "NoSchedule"}])
    for path, value in changes:
        target = given["spec"]
        for key in path[:-1]:
            target = target[key] if isinstance(target.get(key), dict) else target
        target[path[-1]] = value
    return given


fuzzed = settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@fuzzed
@given(changes=pieces, old=st.none() | pieces)
async def test_any_object_gets_a_verdict(client: httpx.AsyncClient, tally: Tally, changes, old):
    before = mangled(old) if old else None
    body = orjson.dumps(review(mangled(changes), old=before))
    for path in PATHS:
        well_formed(await client.post(path, content=body))
    assert "internal_error" not in {outcome for _, outcome in tally.seen}


@fuzzed
@given(anything)
async def test_any_json_in_place_of_the_object_gets_a_verdict(client: httpx.AsyncClient, tally: Tally, value):
    for path in PATHS:
        well_formed(await client.post(path, content=orjson.dumps(review(machine(), object=value, oldObject=value))))
        well_formed(await client.post(path, content=orjson.dumps(value)))
    assert "internal_error" not in {outcome for _, outcome in tally.seen}


@fuzzed
@given(st.binary(max_size=200), st.integers(0, 900), st.integers(0, 50))
async def test_any_bytes_get_an_answer(client: httpx.AsyncClient, tally: Tally, noise: bytes, at: int, cut: int):
    body = orjson.dumps(review(machine()))
    for path in PATHS:
        well_formed(await client.post(path, content=body[:at] + noise + body[at + cut :]))
        well_formed(await client.post(path, content=noise))
    assert "internal_error" not in {outcome for _, outcome in tally.seen}
