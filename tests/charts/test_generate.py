import json

import yaml

from charts.generate import DECIDED_BY_VALUES, main, rows
from service import __version__
from service.settings import Settings
from tests.charts.helm import CHART


def test_what_the_chart_takes_from_elsewhere_is_up_to_date():
    assert main(["--check"]) == 0


def test_a_stale_file_is_named_and_written_again(monkeypatch, tmp_path, capsys):
    (tmp_path / "README.md").write_text("old")
    monkeypatch.setattr("charts.generate.ROOT", tmp_path)
    monkeypatch.setattr("charts.generate.generated", lambda: iter([("README.md", "new"), ("deep/other.yaml", "x")]))

    assert main(["--check"]) == 1
    assert "README.md is out of date" in capsys.readouterr().err
    assert main([]) == 0
    assert (tmp_path / "README.md").read_text() == "new"
    assert (tmp_path / "deep" / "other.yaml").read_text() == "x"
    assert main(["--check"]) == 0


def test_a_row_has_key_type_default_and_the_whole_comment():
    text = "# left out\n\na:\n  # -- One | two\n  # three.\n  b: [x]\n  # no row\n  c: 1\n"
    assert list(rows(text)) == ['| a.b | list | `["x"]` | One \\| two three. |\n']


def test_every_value_is_described():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    keys = {row.split(" | ")[0].removeprefix("| ") for row in rows((CHART / "values.yaml").read_text())}
    assert {
        path for path in leaves(values) if not any(path == key or path.startswith(f"{key}.") for key in keys)
    } == set()


def leaves(value, path=""):
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    else:
        yield path


def test_every_setting_is_a_value_or_decided_by_one():
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]["settings"]["properties"]
    assert set(Settings.model_fields) >= DECIDED_BY_VALUES
    assert len(schema) == len(Settings.model_fields) - len(DECIDED_BY_VALUES)


def test_the_schema_knows_every_value_and_no_other():
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(schema["properties"]) == set(yaml.safe_load((CHART / "values.yaml").read_text())) | {"global"}


def test_the_chart_installs_the_version_that_it_comes_with():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == __version__
