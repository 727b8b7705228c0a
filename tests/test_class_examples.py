"""Every class among the examples would be stored, its user too, and no parameter lets a shell's sign through."""

from pathlib import Path

import pytest

from crds.classes import MachineClass, Tenancy
from crds.classrules import check_class, read_class
from crds.rules import check
from service.cli import main
from service.commands.documents import read

FOLDER = Path(__file__).parent.parent / "examples" / "classes"
USERS = {"desk": "desk-7", "pool": "evening-worker", "cloud": "build-agent"}
RECLAIM = "spec.killIfCommands"
SHELL = [
    *(f"a{sign}b" for sign in " ;|&$<>()`\\\"'*?[]#~=%{}!\n\t\r\0"),
    *("$(id)", "`id`", "-oProxyCommand=id", "a\u2028b", "\u202ea", "a" * 1000, ""),
]


def content(name):
    (document,) = read(str(FOLDER / f"{name}.yaml"))
    return document.content


def of(name) -> MachineClass:
    found = read_class(content(name))
    assert isinstance(found, MachineClass)
    return found


def test_every_example_is_a_class_or_its_user():
    assert {path.stem for path in FOLDER.glob("*.yaml")} == {*USERS, *USERS.values()}
    overview = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert all(f"[{path.name}](classes/{path.name})" in overview for path in FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("name", USERS)
def test_a_class_is_stored_without_a_warning(name):
    verdict = check_class(content(name))
    assert (verdict.violations, verdict.warnings) == ((), ())


@pytest.mark.parametrize(("name", "user"), USERS.items())
def test_its_user_is_stored_and_complete(name, user):
    verdict = check(content(user), tenancy=Tenancy(find=lambda _name: of(name)))
    assert verdict.violations == ()
    assert [warning for warning in verdict.warnings if not warning.startswith(RECLAIM)] == []
    assert verdict.model is not None
    assert "$(params" not in str(verdict.model.spec.bootstrap_spec) + str(verdict.model.spec.infrastructure_spec)


@pytest.mark.parametrize("name", USERS)
def test_no_parameter_takes_a_sign_that_a_shell_reads(name):
    for parameter in of(name).parameters.values():
        for value in SHELL:
            assert list(parameter.violations(value, "")), (parameter.name, value)


@pytest.mark.parametrize(("name", "user"), USERS.items())
def test_validate_and_preview_take_the_class_beside_its_user(name, user, capsys):
    paths = [str(FOLDER / f"{user}.yaml"), "-f", str(FOLDER / f"{name}.yaml")]
    assert main(["validate", *paths]) == 0
    said = capsys.readouterr().out
    assert f"{user}: allowed" in said
    assert f"ScheduledMachineClass {name}: allowed" in said
    assert main(["preview", *paths, "--from", "2026-03-02"]) == 0
    assert "Mon 2026-03-02" in capsys.readouterr().out


def test_without_the_class_validate_says_what_is_not_checked(capsys):
    assert main(["validate", str(FOLDER / "desk-7.yaml")]) == 0
    assert "ScheduledMachineClass desk is not in these files; give its file too" in capsys.readouterr().out


def test_wrong_parameters_are_rejected_on_the_command_line(tmp_path, capsys):
    wrong = tmp_path / "wrong.yaml"
    text = (FOLDER / "desk-7.yaml").read_text(encoding="utf-8")
    wrong.write_text(text.replace("10.20.3.7", "10.30.0.1").replace("floor: third", "flor: third"), encoding="utf-8")
    assert main(["validate", str(wrong), "-f", str(FOLDER / "desk.yaml")]) == 1
    said = capsys.readouterr().out
    assert "spec.parameters.address" in said
    assert "spec.parameters.flor" in said
    namespace = tmp_path / "namespace.yaml"
    namespace.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: trading}\n", encoding="utf-8")
    paths = [str(FOLDER / "desk-7.yaml"), "-f", str(FOLDER / "desk.yaml"), "-f", str(namespace)]
    assert main(["validate", *paths]) == 1
    assert "is not for namespace trading" in capsys.readouterr().out
