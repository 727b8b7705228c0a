"""Asks a Prometheus for the figures of `5spot report`."""

from typing import Final
from urllib.parse import urlsplit

import aiohttp
import orjson

from service.commands.table import UsageError
from service.fleet.prometheus import Sample, queries, read_answer, report_from
from service.fleet.usage import ReportPeriod, UsageReport

TIMEOUT_SECONDS: Final = 60.0
ANSWER_MAX: Final = 4 * 1024 * 1024


async def read_report(url: str, period: ReportPeriod) -> UsageReport:
    """The report on the period; `UsageError` if Prometheus does not answer."""
    _check(url)
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        try:
            answers = {name: await _ask(session, url, text, period) for name, text in queries(period).items()}
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            host, why = urlsplit(url).hostname, str(error) or type(error).__name__
            raise UsageError(f"Prometheus at {host} does not answer: {why}") from None
    return report_from(answers, period)


async def _ask(session: aiohttp.ClientSession, url: str, query: str, period: ReportPeriod) -> tuple[Sample, ...]:
    form = {"query": query, "time": str(period.until.timestamp())}
    address = f"{url.rstrip('/')}/api/v1/query"
    async with session.post(address, data=form, allow_redirects=False) as answer:
        body = await answer.content.read(ANSWER_MAX)
        while not answer.content.at_eof() and len(body) < ANSWER_MAX:
            body += await answer.content.read(ANSWER_MAX - len(body))
        if answer.status in (401, 403, 404) or 300 <= answer.status < 400:
            raise ValueError(f"HTTP {answer.status}")
    try:
        return read_answer(orjson.loads(body))
    except orjson.JSONDecodeError:
        raise ValueError(f"HTTP {answer.status}, and no JSON") from None


def _check(url: str) -> None:
    if not _is_address(url):
        raise UsageError(f"--prometheus needs an address such as http://prometheus:9090, not {url!r}")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as a port that is no number
        return False
