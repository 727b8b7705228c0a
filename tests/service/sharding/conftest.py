"""The clock of the tests of leases, which a test moves by hand."""

import pytest


class Now:
    def __init__(self):
        self.at = 100.0

    def __call__(self):
        return self.at


@pytest.fixture
def now():
    return Now()
