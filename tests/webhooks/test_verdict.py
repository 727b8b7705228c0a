import orjson
import pytest

from crds import defaults
from crds.providers import ProviderPolicy
from tests.webhooks.reviews import at_once, changed, machine, review
from webhooks.answers import AdmissionOutcome
from webhooks.review import parse
from webhooks.verdict import Gate


def judge(given, *, gate: Gate | None = None, **options):
    answer = at_once((gate or Gate()).validate(parse(orjson.dumps(review(given, **options)))))
    return answer, orjson.loads(answer.body)["response"]


def fields(response) -> list[str]:
    return [cause["field"] for cause in response["status"]["details"]["causes"]]


def test_a_valid_object_is_allowed_without_a_warning():
    answer, response = judge(machine())
    assert answer.outcome is AdmissionOutcome.ALLOWED
    assert response == {"uid": response["uid"], "allowed": True}


def test_everything_that_is_wrong_is_listed_with_value_and_what_is_allowed():
    given = machine(priority="50", clusterName=None, nodeTaints=[{"key": "kubernetes.io/x", "effect": "Never"}])
    answer, response = judge(given)
    assert answer.outcome is AdmissionOutcome.INVALID
    assert set(fields(response)) == {
        "spec.priority",
        "spec.clusterName",
        "spec.nodeTaints[0].key",
        "spec.nodeTaints[0].effect",
    }
    causes = {cause["field"]: cause for cause in response["status"]["details"]["causes"]}
    assert causes["spec.priority"]["message"].startswith('Invalid value: "50": ')
    assert causes["spec.clusterName"]["reason"] == "FieldValueRequired"
    assert all(field in response["status"]["message"] for field in causes)


def defaulted(given, **options):
    answer = at_once(Gate().default(parse(orjson.dumps(review(given, **options)))))
    return answer, orjson.loads(answer.body)["response"]


def test_defaulting_comes_before_the_schema_and_so_refuses_all_that_is_wrong_in_our_words():
    given = machine(priority="50", clusterName=None, schedule={"hoursOfDay": [9], "timezone": "Mars/Phobos"})
    answer, response = defaulted(given)
    assert answer.outcome is AdmissionOutcome.INVALID
    assert response == judge(given)[1]
    assert "put it in quotes" in response["status"]["message"]
    assert set(fields(response)) == {
        "spec.priority",
        "spec.clusterName",
        "spec.schedule.hoursOfDay[0]",
        "spec.schedule.timezone",
    }


@pytest.mark.parametrize("missing", ["clusterName", "schedule", "bootstrapSpec"])
def test_what_is_merely_missing_another_webhook_may_still_add(missing):
    answer, response = defaulted(machine(**{missing: None}))
    assert answer.outcome is AdmissionOutcome.DEFAULTED
    assert response["allowed"] is True
    assert judge(machine(**{missing: None}))[1]["allowed"] is False


def test_defaulting_too_judges_an_update_on_what_it_changes():
    old = machine(priority=300)
    assert defaulted(changed(old, labels={"team": "blue"}), old=old)[1]["allowed"] is True
    assert defaulted(machine(priority=301), old=old)[1]["allowed"] is False


def test_a_default_that_goes_with_its_cron_is_not_held_against_an_update():
    old = machine(schedule={"cron": "0 9 * * *", "duration": "1m"})
    assert defaulted(machine(schedule={"daysOfWeek": ["mon"], "duration": "1m"}), old=old)[1]["allowed"] is True
    assert defaulted(machine(schedule={"daysOfWeek": ["mon"], "duration": "2m"}), old=old)[1]["allowed"] is False


def place(raw, path, value):
    """Adds a default, as the webhook's patch does."""
    *parents, name = path
    for parent in parents:
        raw = raw.setdefault(parent, {})
    raw[name] = value


@pytest.mark.parametrize("schedule", [{}, {"hoursOfDay": None}, {"daysOfWeek": [], "enabled": False}])
def test_the_empty_lists_that_defaulting_adds_are_not_held_against_an_update(schedule):
    old = machine(schedule=schedule)
    given = changed(old, labels={"team": "blue"})
    for path, value in defaults.absent(given).items():
        place(given, path, value)
    assert given["spec"]["schedule"]["hoursOfDay"] == []
    assert judge(given, old=old)[1]["allowed"] is True
    emptied = judge(given, old=machine(schedule={"daysOfWeek": ["mon"]}))[1]
    assert fields(emptied) == ["spec.schedule"]


def test_text_that_could_forge_a_line_is_escaped_in_every_part_of_the_answer():
    given = machine(clusterName="a\nb\x00\x1b[31m", **{"odd\nfield": 1})
    _, response = judge(given)
    message = response["status"]["message"]
    assert message.isprintable()
    assert all(c["message"].isprintable() and c["field"].isprintable() for c in response["status"]["details"]["causes"])


def test_what_is_suspicious_is_let_in_with_a_warning():
    answer, response = judge(machine(schedule={"daysOfWeek": ["fri"], "hoursOfDay": ["22-6"]}))
    assert answer.outcome is AdmissionOutcome.WARNED
    assert response["allowed"] is True
    assert "spec.schedule" in response["warnings"][0]


def test_a_bootstrap_kind_without_a_version_is_let_in_with_a_warning():
    kubeadm = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig", "spec": {}}
    _, response = judge(machine(bootstrapSpec=kubeadm))
    assert response["allowed"] is True
    assert response["warnings"][0].startswith("spec.machineTemplate.version: is not set")
    assert "warnings" not in judge(machine(bootstrapSpec=kubeadm, machineTemplate={"version": "v1.34.2"}))[1]


@pytest.mark.parametrize(("exists", "warned"), [(True, False), (None, False), (False, True)])
def test_a_cluster_that_does_not_exist_brings_a_warning_and_one_that_is_not_known_does_not(exists, warned):
    asked = []

    def lookup(namespace: str, name: str) -> bool | None:
        asked.append((namespace, name))
        return exists

    _, response = judge(machine(), gate=Gate(cluster_exists=lookup))
    assert asked == [("default", "production")]
    assert response["allowed"] is True
    assert ("no Cluster production in namespace default" in "".join(response.get("warnings", []))) is warned


def test_the_operators_allowlist_decides_about_providers():
    policy = ProviderPolicy(bootstrap_groups=frozenset({"example.org"}))
    _, response = judge(machine(), gate=Gate(policy=policy))
    assert fields(response) == ["spec.bootstrapSpec.apiVersion"]


def test_an_update_is_judged_on_what_it_changes():
    old = machine(priority=999)
    _, labelled = judge(changed(old, labels={"a": "b"}), old=old)
    assert labelled["allowed"] is True
    _, worse = judge(machine(priority=1000), old=old)
    assert fields(worse) == ["spec.priority"]


def test_the_cluster_cannot_change_while_a_machine_exists():
    old = machine() | {"status": {"machineRef": {"name": "worker-machine"}}}
    _, response = judge(machine(clusterName="other"), old=old)
    assert fields(response) == ["spec.clusterName"]
    _, free = judge(machine(clusterName="other"), old=machine())
    assert free["allowed"] is True


def test_the_deletion_of_an_object_is_never_held_up():
    leaving = changed(machine(priority=999), deletionTimestamp="2026-01-01T00:00:00Z", finalizers=[])
    answer, response = judge(leaving, old=machine(priority=999))
    assert response["allowed"] is True
    assert answer.outcome is AdmissionOutcome.NOT_JUDGED


def test_but_an_edit_of_its_spec_is_judged():
    leaving = changed(machine(priority=999), deletionTimestamp="2026-01-01T00:00:00Z")
    answer, response = judge(leaving, old=changed(machine(), deletionTimestamp="2026-01-01T00:00:00Z"))
    assert answer.outcome is AdmissionOutcome.INVALID
    assert fields(response) == ["spec.priority"]


def test_a_new_object_that_says_it_is_being_deleted_is_judged_all_the_same():
    answer, response = judge(changed(machine(priority=999), deletionTimestamp="2026-01-01T00:00:00Z"))
    assert answer.outcome is AdmissionOutcome.INVALID
    assert fields(response) == ["spec.priority"]


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_deletion_is_never_blocked(operation: str):
    answer, response = judge(None, old=machine(priority=999), operation=operation)
    assert response["allowed"] is True
    assert answer.outcome is AdmissionOutcome.NOT_JUDGED


def test_a_status_update_is_not_judged():
    _, response = judge(machine(priority=999), subResource="status")
    assert response["allowed"] is True


def test_a_review_without_an_object_is_rejected_not_crashed_on():
    answer, response = judge(None)
    assert answer.outcome is AdmissionOutcome.INVALID
    assert response["allowed"] is False


def test_dry_run_gets_the_same_verdict():
    assert judge(machine(priority=999), dryRun=True) == judge(machine(priority=999))
    assert judge(machine(), dryRun=True) == judge(machine())


def test_defaulting_answers_a_patch_and_then_none():
    gate = Gate()
    answer = at_once(gate.default(parse(orjson.dumps(review(machine())))))
    assert answer.outcome is AdmissionOutcome.DEFAULTED
    assert orjson.loads(answer.body)["response"]["patchType"] == "JSONPatch"


def test_defaulting_leaves_alone_what_is_being_deleted():
    leaving = changed(machine(), deletionTimestamp="2026-01-01T00:00:00Z")
    answer = at_once(Gate().default(parse(orjson.dumps(review(leaving, old=machine())))))
    assert answer.outcome is AdmissionOutcome.NOT_JUDGED
    assert "patch" not in orjson.loads(answer.body)["response"]
