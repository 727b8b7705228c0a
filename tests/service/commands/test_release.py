import subprocess
import sys

import pytest

from crds import names
from service import uninstall
from service.cli import main
from service.commands import cluster, release
from service.runtime.key import Key
from service.uninstall import Found, Hold, Machine, Outcome, signs_of_life

KEY = Key("team", "worker")
LEASE = Key("5spot-system", "5spot-shard-0-of-1")


def line(**facts):
    return release._line(Found(KEY, **({"outcome": Outcome.RELEASED} | facts)), dry_run=False)


def test_help_does_not_wait_for_the_client():
    heavy = ("pydantic", "kubernetes_asyncio", "aiohttp", "structlog", "yaml", "service.kube.client")
    script = (
        "import sys, contextlib, io, service.cli\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    service.cli.main(['release', '--help'])\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_help_says_what_is_taken_off_and_what_stays(capsys):
    with pytest.raises(SystemExit):
        main(["release", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert names.FINALIZER in told
    assert "so do Machines" in told


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["worker"], "in which namespace is worker? Write NAMESPACE/worker, or give -n NAMESPACE"),
        (["-n", "team", "other/worker"], "other/worker is not in the namespace team that -n names"),
        (["a/b/c"], "'a/b/c' is not a name"),
        (["/worker"], "'/worker' is not a name"),
        (["team/"], "'team/' is not a name"),
    ],
)
def test_arguments_that_are_unclear_are_asked_about(capsys, words, says):
    assert main(["release", *words, "--yes"]) == 2
    assert says in capsys.readouterr().err


def test_a_kubeconfig_that_is_not_there_is_named(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    assert main(["release", "--yes"]) == 1
    assert f"{tmp_path / 'absent'}: no such kubeconfig file" in capsys.readouterr().err


def test_without_a_kubeconfig_and_outside_a_pod_it_is_that_of_the_person(capsys, tmp_path, monkeypatch):
    for name in (*cluster.VARIABLES, cluster.IN_A_POD):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["release", "--yes"]) == 1
    assert f"{tmp_path}/.kube/config: no such kubeconfig file" in capsys.readouterr().err


def test_a_machine_that_stays_is_named_with_the_command_that_removes_it():
    assert line(left_behind=(Machine("Machine", "worker-machine"),)) == (
        "team/worker: released; Machine worker-machine stays, and nobody removes it any more "
        "(kubectl delete machines.cluster.x-k8s.io -n team worker-machine)"
    )


def test_what_goes_by_itself_is_told_from_what_stays():
    assert line(left_behind=(Machine("Machine", "worker-machine", leaving=True),)).endswith(
        "Machine worker-machine is being removed by Cluster API"
    )
    assert line(left_behind=(Machine("RemoteMachine", "worker-infra"),)).endswith(
        "RemoteMachine worker-infra goes when the ScheduledMachine is deleted"
    )


@pytest.mark.parametrize("known_by", ["owner", "own"])
def test_what_is_there_counts_and_not_what_the_status_remembers(known_by):
    recorded = Found(KEY, uid="owner", left_behind=(Machine("Machine", "worker-machine", "own"),))
    assert uninstall._with_machines(recorded, {}).left_behind == ()
    there = {known_by: Machine("Machine", "worker-machine", "own", leaving=True)}
    assert uninstall._with_machines(recorded, there).left_behind == (there[known_by],)


@pytest.mark.parametrize(
    ("status", "kinds"),
    [
        ({}, []),
        ({"machineRef": {"kind": "Machine", "name": "m"}, "bootstrapRef": {"kind": "B", "name": "b"}}, ["Machine"]),
        ({"bootstrapRef": {"kind": "B", "name": "b"}, "infrastructureRef": {"kind": "I", "name": "i"}}, ["B", "I"]),
        ({"machineRef": {}, "bootstrapRef": None}, []),
    ],
)
def test_the_status_names_what_may_be_left(status, kinds):
    assert [each.kind for each in uninstall._recorded(status)] == kinds


def test_a_sign_of_life_is_a_renewal_or_a_newcomer():
    old = Hold(LEASE, "a", "09:00:00", 15)
    renewed, other = Hold(LEASE, "a", "09:00:02", 15), Hold(Key("x", LEASE.name), "b", "09:00:00", 15)
    assert signs_of_life({LEASE: old}, {LEASE: old}) == []
    assert signs_of_life({LEASE: old}, {}) == []
    assert signs_of_life({LEASE: old}, {LEASE: renewed}) == [renewed]
    assert signs_of_life({LEASE: old}, {LEASE: old, other.lease: other}) == [other]
