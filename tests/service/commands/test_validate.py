import io
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crds.base import rfc3339
from service.cli import main
from tests.corpus import override
from tests.crds.machines import machine, nested, scheduled
from tests.service.commands.manifests import run_json, written

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden"}}


def test_all_allowed_exits_0(tmp_path, capsys):
    assert main(["validate", "-f", written(tmp_path, machine(), machine(name="other"))]) == 0
    assert capsys.readouterr().out == "default/worker: allowed\ndefault/other: allowed\n"


def test_json_has_one_entry_per_document_in_order(tmp_path, capsys):
    bad = machine(name="bad", nodeTaints=[{"key": "kubernetes.io/x", "effect": "NoSchedule"}], priority="50")
    bad["metadata"]["namespace"] = "team"
    path = written(tmp_path, machine(killIfCommands=["steam"]), bad)
    code, (good, rejected) = run_json(capsys, "validate", "-f", path)
    assert code == 1
    assert good == {
        "kind": "ScheduledMachine",
        "name": "worker",
        "namespace": "default",
        "allowed": True,
        "violations": [],
        "warnings": good["warnings"],
    }
    assert len(good["warnings"]) == 1
    assert rejected["name"] == "bad"
    assert rejected["namespace"] == "team"
    assert rejected["allowed"] is False
    assert [(each["field"], each["value"]) for each in rejected["violations"]] == [
        ("spec.priority", "50"),
        ("spec.nodeTaints[0].key", "kubernetes.io/x"),
    ]
    assert all(each.keys() == {"field", "value", "message"} for each in rejected["violations"])


def test_a_document_without_namespace_counts_as_default(tmp_path, capsys):
    manifest = machine()
    del manifest["metadata"]["namespace"]
    _, (verdict,) = run_json(capsys, "validate", "-f", written(tmp_path, manifest))
    assert verdict["namespace"] == "default"


def test_missing_and_unknown_fields_stand_under_their_own_path(tmp_path, capsys):
    manifest = machine(colour="blue")
    del manifest["spec"]["clusterName"]
    _, (verdict,) = run_json(capsys, "validate", "-f", written(tmp_path, manifest))
    assert {each["field"] for each in verdict["violations"]} == {"spec.colour", "spec.clusterName"}


def test_several_files_are_read_in_order(tmp_path, capsys):
    first = written(tmp_path, machine(name="a"), name="a.yaml")
    second = written(tmp_path, machine(name="b"), name="b.yaml")
    _, verdicts = run_json(capsys, "validate", "-f", second, "-f", first)
    assert [verdict["name"] for verdict in verdicts] == ["b", "a"]


def test_other_kinds_are_skipped_and_named(tmp_path, capsys):
    assert main(["validate", "-f", written(tmp_path, SECRET, machine(), machine() | {"kind": "Machine"})]) == 0
    printed = capsys.readouterr()
    assert printed.out == "default/worker: allowed\n"
    assert "skipped Secret hidden (v1)" in printed.err
    assert "skipped Machine worker" in printed.err


def test_a_namespace_is_not_skipped_beside_a_machine_as_its_labels_count(tmp_path, capsys):
    only = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": CLASSES_ONLY}}
    assert main(["validate", "-f", written(tmp_path, only, machine())]) == 1
    printed = capsys.readouterr()
    assert "is required in this namespace" in printed.out
    assert "skipped" not in printed.err
    assert main(["validate", "-f", written(tmp_path, only)]) == 2
    assert "skipped Namespace default (v1)" in capsys.readouterr().err


CLASSES_ONLY = {"5spot.finos.org/tenancy": "classes"}
LIST = {"apiVersion": "v1", "kind": "List"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("hello", 'is not a manifest: expected an object, found "hello"'),
        (5, "is not a manifest: expected an object, found 5"),
        ([], "is a list, not a manifest"),
        ([machine()], "put its entries in `items` of a `kind: List`"),
        (LIST | {"items": "foo"}, "is a List whose items are not a list"),
        (LIST | {"items": [None]}, "is not a manifest: expected an object, found null"),
        (LIST | {"items": [5]}, "is not a manifest: expected an object, found 5"),
        ({"replicas": 3}, "it has no kind"),
        ({"apiVersion": "v1", "kind": ["Pod"]}, "its kind is not a string"),
    ],
)
def test_what_is_no_manifest_exits_2_and_the_rest_is_still_judged(tmp_path, capsys, content, says):
    path = written(tmp_path, content, machine())
    assert main(["validate", "-f", path]) == 2
    printed = capsys.readouterr()
    assert printed.out == "default/worker: allowed\n"
    assert f"{path}:1: " in printed.err
    assert says in printed.err


def test_a_json_array_of_manifests_exits_2_with_a_hint(tmp_path, capsys):
    path = tmp_path / "array.json"
    path.write_text(json.dumps([machine(), machine()], indent=2), encoding="utf-8")
    assert main(["validate", "-f", str(path)]) == 2
    assert "`kind: List`" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n", "null\n"])
@pytest.mark.parametrize("command", ["validate", "preview"])
def test_files_without_a_scheduledmachine_exit_2_and_are_named(tmp_path, capsys, text, command):
    path = tmp_path / "empty.yaml"
    path.write_text(text, encoding="utf-8")
    assert main([command, "-f", str(path)]) == 2
    assert f"there is no ScheduledMachine in {path}" in capsys.readouterr().err


def test_an_empty_document_between_others_is_ignored_as_kubectl_does(tmp_path, capsys):
    path = tmp_path / "gaps.yaml"
    path.write_text(f"---\n---\n{json.dumps(machine())}\n---\nnull\n", encoding="utf-8")
    assert main(["validate", str(path)]) == 0
    assert capsys.readouterr().out == "default/worker: allowed\n"


@pytest.mark.parametrize("kind", [None, "scheduledmachine", "SCHEDULEDMACHINE", ["a"], {"a": "b"}, 5, True])
@pytest.mark.parametrize("command", ["validate", "preview"])
def test_an_object_of_our_group_that_says_its_kind_wrong_is_rejected_over_its_kind(tmp_path, capsys, kind, command):
    code, (verdict,) = run_json(capsys, command, "-f", written(tmp_path, machine() | {"kind": kind}))
    assert code == 1
    assert [each["field"] for each in verdict["violations"]] == ["kind"]


def test_a_scheduled_machine_of_another_group_is_another_kind(tmp_path, capsys):
    _, verdicts = run_json(capsys, "validate", "-f", written(tmp_path, machine() | {"apiVersion": "example.com/v1"}))
    assert verdicts == []


def test_another_version_of_ours_is_rejected(tmp_path, capsys):
    code, _ = run_json(capsys, "validate", "-f", written(tmp_path, machine() | {"apiVersion": "5spot.finos.org/v9"}))
    assert code == 1


def test_the_operators_policy_can_be_given(tmp_path, capsys):
    manifest = machine()
    manifest["spec"]["infrastructureSpec"]["apiVersion"] = "metal.example.com/v1"
    path = written(tmp_path, manifest)
    assert main(["validate", "-f", path]) == 1
    assert main(["validate", "-f", path, "--infrastructure-groups", "k0smotron.io, metal.example.com"]) == 0
    assert main(["validate", "-f", path, "--refused-kinds", "Remote*"]) == 1


def test_a_list_is_unpacked(tmp_path, capsys):
    listed = {"apiVersion": "v1", "kind": "List", "items": [machine(), SECRET, machine(name="b")]}
    _, verdicts = run_json(capsys, "validate", "-f", written(tmp_path, listed))
    assert [verdict["name"] for verdict in verdicts] == ["worker", "b"]


def test_a_list_in_a_list_is_unpacked(tmp_path, capsys):
    listed = LIST | {"items": [LIST | {"items": [machine()]}, LIST]}
    _, verdicts = run_json(capsys, "validate", "-f", written(tmp_path, listed))
    assert [verdict["name"] for verdict in verdicts] == ["worker"]


def test_a_large_list_reads_the_same_as_yaml_and_as_json(tmp_path, capsys):
    items = [machine(name=f"m{number}", killIfCommands=["a"] * 50) for number in range(1500)]
    code, verdicts = run_json(capsys, "validate", "-f", written(tmp_path, SECRET, LIST | {"items": items}))
    assert code == 0
    assert len(verdicts) == len(items)


@pytest.mark.parametrize("levels", [90, 96, 97, 99, 100])
def test_what_the_webhook_takes_is_read_however_deep(tmp_path, levels):
    manifest = machine()
    manifest["spec"]["bootstrapSpec"]["spec"] = nested(levels)
    assert main(["validate", "-f", written(tmp_path, LIST | {"items": [manifest]})]) == 0


@pytest.mark.parametrize("levels", [101, 105, 150])
def test_what_the_webhook_finds_too_deep_is_rejected_and_not_unreadable(tmp_path, capsys, levels):
    manifest = machine()
    manifest["spec"]["bootstrapSpec"]["spec"] = nested(levels)
    assert main(["validate", "-f", written(tmp_path, manifest)]) == 1
    assert "nested deeper than 100 levels" in capsys.readouterr().out


def test_standard_input_that_is_closed_exits_2(tmp_path):
    command = f"{sys.executable} -m service validate -f - <&-"
    done = subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "standard input: is closed\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
@pytest.mark.parametrize("output", ["text", "json"])
def test_any_text_can_be_shown_on_any_terminal(tmp_path, encoding, output):
    manifest = machine(clusterName="mön \N{GRINNING FACE}")
    command = [sys.executable, "-m", "service", "validate", "-f", written(tmp_path, manifest), "-o", output]
    environment = os.environ | {"PYTHONIOENCODING": f"{encoding}:strict"}
    done = subprocess.run(command, check=False, capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (1, b"")
    if output == "json":
        (verdict,) = json.loads(done.stdout.decode(encoding))
        assert verdict["violations"][0]["value"] == "mön \N{GRINNING FACE}"


def test_standard_input_is_read(capsys, monkeypatch, tmp_path):
    content = Path(written(tmp_path, machine())).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert main(["validate", "-f", "-"]) == 0


def test_nothing_to_judge_is_said(tmp_path, capsys):
    assert main(["validate", "-f", written(tmp_path, SECRET)]) == 2
    assert "there is no ScheduledMachine" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["a: [", "a: b: c", "\x00", "a: *missing"])
def test_what_cannot_be_read_exits_2_and_says_where(tmp_path, capsys, content):
    path = tmp_path / "broken.yaml"
    path.write_text(content, encoding="utf-8")
    assert main(["validate", "-f", str(path)]) == 2
    printed = capsys.readouterr().err
    assert "broken.yaml" in printed
    assert "Traceback" not in printed


def test_one_unreadable_file_outweighs_a_rejected_one_and_the_rest_is_still_judged(tmp_path, capsys):
    bad = written(tmp_path, scheduled())
    code, verdicts = run_json(capsys, "validate", "-f", str(tmp_path / "missing.yaml"), "-f", bad)
    assert code == 2
    assert [verdict["allowed"] for verdict in verdicts] == [False]


def until(days, **status):
    ends = datetime.now(UTC) + timedelta(days=days)
    return override() | {"spec": {**override()["spec"], "until": rfc3339(ends)}, "status": status}


def test_an_override_that_is_over_or_ends_too_late_gets_the_warning_of_the_webhook(tmp_path, capsys):
    accepted = until(20, acceptedAt=rfc3339(datetime.now(UTC) - timedelta(days=12)))
    code, found = run_json(capsys, "validate", written(tmp_path, until(-1), until(32), until(30), accepted))
    assert (code, [each["allowed"] for each in found]) == (0, [True] * 4)
    over, far, near, old = ("".join(each["warnings"]) for each in found)
    assert over.endswith("is in the past; the override has no effect")
    assert far.startswith("spec.until: must be at most 31 days after the override is accepted")
    assert near == ""
    assert "31 days after the override is accepted" in old


def test_the_longest_override_is_what_the_operator_is_configured_to(tmp_path, capsys):
    code, (found,) = run_json(capsys, "validate", written(tmp_path, until(32)), "--max-override-days", "40")
    assert (code, found["warnings"]) == (0, [])


def test_control_characters_never_reach_the_terminal(tmp_path, capsys):
    manifest = machine(clusterName="\x1b[31m\x07")
    manifest["metadata"]["name"] = "\x1b[2J"
    main(["validate", "-f", written(tmp_path, manifest)])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("text", ["9-17\n", "9\t", "\x1b[31m", "9\xa0", "\x9b31m\u202e\U000e0001", "9" * 600, "\\n"])
def test_programs_get_the_offending_text_as_it_was_written(tmp_path, capsys, text):
    manifest = machine(clusterName=text)
    main(["validate", "-f", written(tmp_path, manifest), "-o", "json"])
    printed = capsys.readouterr().out
    assert [each["value"] for each in json.loads(printed)[0]["violations"]] == [text]
    assert printed.replace("\n", "").isprintable()


def test_it_starts_well_under_a_second_and_loads_no_server(tmp_path):
    path = written(tmp_path, machine())
    probe = (
        "import sys; from service.cli import main; code = main(['validate', '-f', sys.argv[1]]); "
        "heavy = {'fastapi', 'kubernetes_asyncio', 'aiohttp', 'asyncio', 'uvicorn'} & set(sys.modules); "
        "sys.exit(f'{heavy} loaded' if heavy else code)"
    )
    # Beside what no command can do without, as a slow machine must not fail the test.
    assert seconds_of(probe, path) < max(1, 4 * seconds_of("import pydantic, yaml"))


def seconds_of(code, *words):
    """What a program takes: processor time, as other work on the machine does not count."""
    before, started = os.times().children_user, time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, *words], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return min(os.times().children_user - before, time.perf_counter() - started)
