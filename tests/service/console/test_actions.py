"""What a page may ask for."""

import pytest
from pydantic import ValidationError

from service.console.actions import NewOverride, RequestedAction

DAY = "2026-11-20T22:00:00Z"
NOWHERE = ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"]


@pytest.mark.parametrize("time", NOWHERE)
def test_a_time_that_does_not_exist_in_every_time_zone_is_refused(time: str) -> None:
    with pytest.raises(ValidationError, match="until"):
        RequestedAction.model_validate({"action": "extend", "until": time})
    made = {"namespace": "team-a", "machines": ["desk-7"], "state": "Open", "until": DAY}
    for name in ("from", "until"):
        with pytest.raises(ValidationError, match=name):
            NewOverride.model_validate({**made, name: time})
    assert NewOverride.model_validate({**made, "from": DAY}).begins is not None
