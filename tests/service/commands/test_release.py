import pytest

from crds import names
from service.cli import main
from service.commands import cluster, uninstall
from service.commands.finalizers import ReleaseOutcome, ReleaseTarget, RemainingMachine
from service.commands.operators import Holder, newly_renewed

LEASE = ("5spot-system", "5spot-shard-0-of-1")


def line(**facts):
    return uninstall.line(
        ReleaseTarget(("team", "worker"), **({"outcome": ReleaseOutcome.RELEASED} | facts)), dry_run=False
    )


def test_help_says_what_is_taken_off_and_what_stays(capsys):
    assert main(["release", "--help"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert names.FINALIZER in printed
    assert "so do Machines" in printed


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
    assert line(machine=RemainingMachine("worker-machine")) == (
        "team/worker: released; Machine worker-machine stays until you delete it "
        "(kubectl delete machines.cluster.x-k8s.io -n team worker-machine)"
    )


def test_a_machine_that_is_being_deleted_needs_no_command():
    assert line(machine=RemainingMachine("worker-machine", leaving=True)).endswith(
        "released; Cluster API is deleting Machine worker-machine"
    )


def test_a_running_operator_renews_its_lease_or_takes_another():
    old = Holder(LEASE, "a", "09:00:00", 15)
    renewed, other = Holder(LEASE, "a", "09:00:02", 15), Holder(("x", LEASE[1]), "b", "09:00:00", 15)
    assert newly_renewed({LEASE: old}, {LEASE: old}) == []
    assert newly_renewed({LEASE: old}, {}) == []
    assert newly_renewed({LEASE: old}, {LEASE: renewed}) == [renewed]
    assert newly_renewed({LEASE: old}, {LEASE: old, other.lease: other}) == [other]
