import pytest

from service.cli import main


@pytest.mark.parametrize("words", [[], ["desk-7", "--all"], ["desk-7", "-A"], ["-A"]])
def test_it_says_what_it_wants(words, capsys):
    assert main(["adopt", *words]) == 2
    assert "name ScheduledMachines, or give --all" in capsys.readouterr().err
