import os
from pathlib import Path

import pytest

from service.cli import main
from service.commands.filenames import looks_like_a_file
from tests.crds.machines import machine
from tests.service.commands.manifests import run_json, written


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "below").mkdir()
    for name in ("b.yaml", "a.yml", "c.json", "below/d.yaml"):
        written(tmp_path, machine(name=Path(name).stem), name=name)
    (tmp_path / "README.md").write_text("no manifest")
    return tmp_path


def names(capsys, *arguments):
    code, entries = run_json(capsys, "validate", *arguments)
    assert code == 0
    return [entry["name"] for entry in entries]


def test_a_directory_stands_for_its_manifests(tree, capsys):
    assert names(capsys, str(tree)) == ["a", "b", "c"]


def test_directories_below_are_read_on_request(tree, capsys):
    assert names(capsys, "-R", str(tree)) == ["a", "b", "d", "c"]


def test_a_pattern_that_no_shell_expanded_is_expanded(tree, capsys):
    assert names(capsys, f"{tree}/*.y*ml") == ["a", "b"]
    assert names(capsys, f"{tree}/**/d.yaml") == ["d"]


def test_files_directories_and_options_are_taken_together_in_order(tree, capsys):
    assert names(capsys, str(tree / "c.json"), str(tree / "below"), "-f", str(tree / "a.yml")) == ["c", "d", "a"]


def test_a_file_whose_name_looks_like_a_pattern_is_read(tmp_path, capsys):
    assert names(capsys, written(tmp_path, machine(name="odd"), name="[a].yaml")) == ["odd"]


@pytest.mark.parametrize(
    ("argument", "says"), [("empty", "has no .yaml, .yml, .json file"), ("no*", "no file matches")]
)
def test_an_argument_that_stands_for_no_file_exits_2(tmp_path, capsys, argument, says):
    (tmp_path / "empty").mkdir()
    assert main(["validate", str(tmp_path / argument)]) == 2
    assert says in capsys.readouterr().err


def test_no_argument_at_all_exits_2(capsys):
    assert main(["validate"]) == 2
    assert "name at least one FILE" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["validate", "preview"])
def test_an_empty_name_is_not_the_current_directory(tree, monkeypatch, capsys, command):
    monkeypatch.chdir(tree)
    assert main([command, ""]) == 2
    assert capsys.readouterr() == ("", "a FILE has an empty name\n")


@pytest.mark.parametrize("option", [(), ("-R",)])
def test_a_link_to_nothing_in_a_directory_is_named(tree, capsys, option):
    (tree / "gone.yaml").symlink_to("nowhere")
    assert main(["validate", *option, str(tree)]) == 2
    assert "gone.yaml: No such file or directory" in capsys.readouterr().err


def test_names_of_objects_are_distinguished_from_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "present").touch()
    for file in ("present", "a/b", "desk.yaml", "*.json", "-", os.curdir):
        assert looks_like_a_file(file), file
    assert not looks_like_a_file("desk-7")
