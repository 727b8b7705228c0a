"""Which machines the commands for a cluster are asked for."""

import pytest

from service.cli import main

COMMANDS = ("extend --for 1h", "suspend --for 1h", "skip", "resume", "overrides", "status", "why")


@pytest.mark.parametrize("name", ["", " ", "..", "desk-7/status", "Desk"])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_no_object_can_be_called_is_wrong_usage(capsys, command, name):
    assert main([*command.split(), name]) == 2
    assert f'5spot: NAME: "{name}" must be 1 to 253 characters' in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_so_is_what_no_namespace_can_be_called(capsys, command):
    assert main([*command.split(), "desk-7", "-n", ".."]) == 2
    assert '5spot: --namespace: ".." must be a namespace' in capsys.readouterr().err
