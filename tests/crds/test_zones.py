"""Zones against Python's zoneinfo, and the names that are not zones."""

import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from crds import zones
from crds.invalid import InvalidValue
from crds.zones import Zone
from tests.crds import brute_force


def refusal(read, *given: object) -> str:
    with pytest.raises(InvalidValue) as caught:
        read(*given)
    return caught.value.message


def test_zones_agree_with_zoneinfo_for_every_name():
    for name in sorted(zones.names()):
        zone, reference = Zone.parse(name), brute_force.zone(name)
        for moment in moments(zone):
            offset = datetime.fromtimestamp(moment, UTC).astimezone(reference).utcoffset()
            assert offset is not None
            assert zone.span(moment).offset == offset.total_seconds(), (name, moment)


def moments(zone: Zone) -> list[int]:
    """The first and last seconds of spans in the past, about now, and beyond all tables."""
    starts = [
        -4_000_000_000,
        -1_500_000_000,
        0,
        900_000_000,
        1_700_000_000,
        1_790_000_000,
        3_500_000_000,
        9_000_000_000,
    ]
    spans = [zone.span(moment) for moment in starts]
    return [edge for span in spans for edge in (span.start, span.end - 1, span.end) if abs(edge) < 10_000_000_000]


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "utc",
        "europe/berlin",
        "Europe/Berlin ",
        "Europe/berlin",
        "../UTC",
        "Europe/../UTC",
        "/usr/share/zoneinfo/UTC",
        "UTC\x00",
        "UTC\n",
        "Europe",
        "Factory",
        "localtime",
        "posixrules",
        "__init__.py",
        "tzdata.zi",
        "EST5EDT4",
        "UTC+2",
        "A" * 65,
        None,
        1,
    ],
)
def test_names_that_are_not_in_the_package_are_refused(name):
    assert refusal(Zone.parse, name)


def test_a_name_in_the_wrong_case_gets_a_suggestion():
    assert "did you mean Europe/Berlin?" in refusal(Zone.parse, "europe/berlin")


def test_the_hosts_own_zones_are_never_read(tmp_path):
    (tmp_path / "Europe").mkdir()
    (tmp_path / "Europe" / "Berlin").write_bytes(b"not a zone")
    (tmp_path / "Home").write_bytes(b"TZif")
    asks = "from crds.values import Zone; print(Zone.parse('Europe/Berlin').span(0).offset)"
    environment = {**os.environ, "PYTHONTZPATH": str(tmp_path)}
    answer = subprocess.run([sys.executable, "-c", asks], env=environment, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "3600"


def test_a_zone_is_loaded_once():
    assert Zone.parse("Asia/Tokyo") is Zone.parse("Asia/Tokyo")
