"""Sending notifications, to a real TLS server that reads them with the SDK of the CloudEvents project."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from service import metrics
from service.decide.notices import Notice, NoticeType
from service.notify import notifier as sending
from service.notify.notifier import QUEUE_MAX, Notifier
from service.notify.sink import Sink, SinkOptions, SinkRefused, Unanswered
from service.runtime.backoff import Backoff
from tests.receiver import Receiver, receiving
from tests.service.decide.builders import CLOSES, MINUTE, MORNING
from tests.service.decide.test_notices import in_service

SECRETS = ("secret-of-the-sink", "secret-of-the-path")


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with receiving(tmp_path) as found:
        yield found


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "PAUSES", Backoff(base=0.001, cap=0.01))


def notice(number: int = 1) -> Notice:
    return Notice(f"id-{number}", NoticeType.READY, "team", "desk", MORNING, {"message": "Grüße", "node": "node-7"})


def counted(result: str) -> float:
    return metrics.NOTIFICATIONS.labels(result)._value.get()


@asynccontextmanager
async def running(sink: Sink, **options: object) -> AsyncIterator[Notifier]:
    notifier = Notifier(sink, source="/5spot/test", **options)  # type: ignore[arg-type]
    task = asyncio.create_task(notifier.run())
    try:
        yield notifier
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def sink(receiver: Receiver) -> Sink:
    return Sink(SinkOptions(receiver.url, receiver.folder))


async def test_the_sdk_reads_what_arrives(receiver: Receiver) -> None:
    async with running(sink(receiver)) as notifier:
        notifier._put(notice())
        await notifier.finish(60)
    (event,) = receiver.events
    assert (event.get_id(), event.get_source(), event.get_specversion()) == ("id-1", "/5spot/test", "1.0")
    assert event.get_type() == "org.finos.5spot.scheduledmachine.ready"
    assert (event.get_subject(), event.get_time()) == ("team/desk", MORNING)
    assert event.get_data() == {"message": "Grüße", "node": "node-7"}
    (request,) = receiver.requests
    assert request[1]["Authorization"] == "Bearer secret-of-the-sink"
    assert request[1]["Content-Type"].startswith("application/cloudevents+json")


async def test_it_is_sent_again_until_the_receiver_takes_it_and_in_order(receiver: Receiver) -> None:
    receiver.answers = [(503, {}), (429, {}), (500, {})]
    failed = counted("failed")
    async with running(sink(receiver)) as notifier:
        notifier._put(notice(1))
        notifier._put(notice(2))
        await notifier.finish(60)
    assert [event.get_id() for event in receiver.events] == ["id-1", "id-2"]
    assert counted("failed") == failed + 3


@pytest.mark.parametrize("status", [400, 413, 415, 422])
async def test_one_that_the_receiver_objects_to_is_not_repeated(receiver: Receiver, status: int) -> None:
    receiver.answers = [(status, {})]
    refused = counted("refused")
    async with running(sink(receiver)) as notifier:
        notifier._put(notice(1))
        notifier._put(notice(2))
        await notifier.finish(60)
    assert [event.get_id() for event in receiver.events] == ["id-2"]
    assert len(receiver.requests) == 2
    assert counted("refused") == refused + 1


@pytest.mark.parametrize("status", [301, 307, 308, 401, 403, 404, 410])
async def test_what_an_administrator_can_correct_loses_nothing_and_a_redirect_is_not_followed(
    receiver: Receiver, status: int
) -> None:
    receiver.answers = [(status, {"Location": f"{receiver.url}/elsewhere"})] * 3
    async with running(sink(receiver)) as notifier:
        notifier._put(notice(1))
        await notifier.finish(60)
    assert [event.get_id() for event in receiver.events] == ["id-1"]
    assert {path for path, _, _ in receiver.requests} == {"/events?key=secret-of-the-path"}
    assert len(receiver.requests) == 4


async def test_one_that_the_receiver_cannot_take_does_not_hold_up_the_others(receiver: Receiver) -> None:
    receiver.answers = [(500, {})] * sending.ATTEMPTS_IN_A_ROW
    async with running(sink(receiver)) as notifier:
        for number in (1, 2, 3):
            notifier._put(notice(number))
        await notifier.finish(60)
    assert [event.get_id() for event in receiver.events] == ["id-2", "id-3", "id-1"]


@pytest.mark.parametrize(("asked", "attempts"), [("300", 1), ("59", 2), ("11", 6)])
async def test_one_that_comes_back_with_retry_after_holds_up_the_others_for_two_minutes_at_most(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, asked: str, attempts: int
) -> None:
    pauses = list[float]()
    sleep = asyncio.sleep

    async def skip(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", skip)
    receiver.answers = [(429, {"Retry-After": asked})] * attempts
    async with running(sink(receiver)) as notifier:
        for number in (1, 2, 3):
            notifier._put(notice(number))
        await notifier.finish(60)
    assert [event.get_id() for event in receiver.events] == ["id-2", "id-3", "id-1"]
    assert 60 <= sum(pauses) <= 120


async def test_a_full_queue_drops_and_counts(receiver: Receiver) -> None:
    notifier = Notifier(sink(receiver))
    dropped = counted("dropped")
    for number in range(QUEUE_MAX + 3):
        notifier._put(notice(number))
    assert counted("dropped") == dropped + 3


async def test_a_server_with_another_certificate_gets_nothing(receiver: Receiver, tmp_path: Path) -> None:
    stranger = Sink(SinkOptions(receiver.url))
    with pytest.raises(Unanswered) as error:
        await stranger.post(b"{}", "application/json")
    assert receiver.requests == []
    assert not any(secret in str(error.value) for secret in SECRETS)
    await stranger.close()


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "https://user:pass@127.0.0.1/", "ftp://x/", "https://", "nothing"]
)
async def test_only_https_without_a_user_is_an_address(tmp_path: Path, url: str) -> None:
    (tmp_path / "url").write_text(url)
    found = Sink(SinkOptions(folder=tmp_path))
    with pytest.raises(Unanswered, match="must begin with https"):
        await found.post(b"{}", "application/json")


@pytest.mark.parametrize("url", [f"https://{'a' * 64}.example/", "https://a..example/", "https://127.0.0.1:99999/"])
async def test_an_address_that_cannot_be_asked_does_not_stop_the_operator(tmp_path: Path, url: str) -> None:
    (tmp_path / "url").write_text(url)
    found = Sink(SinkOptions(folder=tmp_path))
    with pytest.raises(Unanswered):
        await found.post(b"{}", "application/json")
    await found.close()


async def test_a_bundle_of_authorities_may_have_comments_and_be_long(receiver: Receiver) -> None:
    bundle = receiver.folder / "ca.crt"
    bundle.write_text("# Zertifikate für alle\n" * 5000 + bundle.read_text())
    assert bundle.stat().st_size > 64 * 1024
    found = sink(receiver)
    await found.post(b'{"specversion":"1.0","id":"1","source":"/","type":"t"}', "application/cloudevents+json")
    await found.close()


async def test_the_address_may_be_in_the_secret_and_files_are_read_again(receiver: Receiver) -> None:
    found = Sink(SinkOptions(folder=receiver.folder))
    (receiver.folder / "url").write_text(receiver.url + "\n")
    body = b'{"specversion":"1.0","id":"1","source":"/","type":"t"}'
    await found.post(body, "application/cloudevents+json")
    (receiver.folder / "authorization").write_text("Bearer rotated")
    await found.post(body, "application/cloudevents+json")
    assert [headers["Authorization"] for _, headers, _ in receiver.requests] == [
        "Bearer secret-of-the-sink",
        "Bearer rotated",
    ]
    await found.close()


async def test_a_pause_that_the_receiver_asks_for_is_kept_within_limits(receiver: Receiver) -> None:
    receiver.answers = [(503, {"Retry-After": "7"}), (503, {"Retry-After": "99999"}), (503, {"Retry-After": "soon"})]
    found = sink(receiver)
    pauses = []
    for _ in range(3):
        with pytest.raises(Unanswered) as error:
            await found.post(b"{}", "application/json")
        pauses.append(error.value.retry_after)
    assert pauses == [7.0, 60.0, None]
    await found.close()


async def test_a_refusal_says_only_the_status(receiver: Receiver) -> None:
    receiver.answers = [(422, {})]
    found = sink(receiver)
    with pytest.raises(SinkRefused, match=r"^HTTP 422$"):
        await found.post(b"{}", "application/json")
    await found.close()


async def test_a_close_is_announced_once_and_again_after_a_restart(receiver: Receiver) -> None:
    lead = timedelta(minutes=15)
    early, near = in_service(MORNING), in_service(CLOSES - 10 * MINUTE)
    ids = []
    for _ in range(2):
        async with running(sink(receiver), lead=lead) as notifier:
            assert notifier.announce(*early) == CLOSES - lead
            assert notifier.announce(*near) is None
            assert notifier.announce(*near) is None
            await notifier.finish(60)
        ids.append([event.get_id() for event in receiver.events])
        receiver.events.clear()
    assert len(ids[0]) == 1
    assert ids[0] == ids[1]


def test_without_a_sink_it_does_nothing() -> None:
    notifier = Notifier(lead=timedelta(minutes=15))
    assert notifier.announce(*in_service(CLOSES - MINUTE)) is None
    assert len(notifier._queue) == 0
