"""Leads as users write them."""

from datetime import timedelta

import pytest

from crds.invalid import InvalidValue
from crds.leads import Auto, format_lead, parse_lead


@pytest.mark.parametrize("text", ["10m", "1h", "90s", "Auto"])
def test_a_lead_is_written_as_it_was_read(text):
    assert format_lead(parse_lead(text)) == ("1m30s" if text == "90s" else text)


def test_a_lead_is_a_time_or_auto():
    assert (parse_lead("10m"), parse_lead("Auto")) == (timedelta(minutes=10), Auto.AUTO)


@pytest.mark.parametrize("given", ["61m", "0s", "auto", "Auto ", 10, None, ["Auto"], {}])
def test_what_is_neither_is_refused_with_both_ways_to_say_it(given):
    with pytest.raises(InvalidValue, match="at most 1h; or write Auto"):
        parse_lead(given)
