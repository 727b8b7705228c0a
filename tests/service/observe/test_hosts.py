from datetime import UTC, datetime

import pytest

from crds.providers import DEFAULT_POLICY
from service.decide.hosts import DEFAULT_IDENTITIES
from service.decide.intent import read_intent
from service.observe import hosts
from service.observe.hosts import ClaimLookups, Hosts, rank_of
from service.runtime.key import Key
from tests.e2e.manifests import machine

OPEN = datetime(2026, 3, 6, 10, tzinfo=UTC)
CLOSED = datetime(2026, 3, 6, 20, tzinfo=UTC)


def scheduled(name="desk", *, created="2026-01-01T00:00:00Z", has_machine=False, **spec):
    raw = machine(name, infrastructure={"address": "192.0.2.7"}, **spec)
    raw["metadata"] |= {"namespace": "team", "uid": f"uid-{name}", "creationTimestamp": created}
    return raw | {"status": {"machineRef": {"name": f"{name}-machine"}}} if has_machine else raw


def host_terms(raw):
    return list(hosts.host_terms(raw, lambda given: hosts.named_host(DEFAULT_IDENTITIES, given)))


def conflict(mine, *peers, now=OPEN):
    return Claims(mine, *peers).outranked_by(mine, now)


class Claims:
    """ScheduledMachines that name the same host, and how often one was read to evaluate its claim."""

    def __init__(self, *objects):
        self.objects = {key_of(raw): raw for raw in objects}
        self.reads = 0
        self.clusters = {Key("team", "demo"), Key("team", "another")}
        self.hosts = Hosts(DEFAULT_IDENTITIES, ClaimLookups(self.objects.get, self.read, self.clusters.__contains__))
        for key, raw in self.objects.items():
            self.hosts.update(key, raw)

    def read(self, raw):
        self.reads += 1
        return read_intent(raw, DEFAULT_POLICY)

    def change(self, raw):
        self.objects[key_of(raw)] = raw
        return self.hosts.update(key_of(raw), raw)

    def outranked_by(self, mine, now=OPEN):
        return self.hosts.outranked_by(key_of(mine), rank_of(mine), host_terms(mine), now)

    def candidates(self, exclude, now=OPEN):
        (term,) = host_terms(exclude)
        return list(self.hosts.candidates(term, now, exclude=key_of(exclude)))


def key_of(raw):
    return Key(raw["metadata"]["namespace"], raw["metadata"]["name"])


OLDER, NEWER = scheduled("older"), scheduled("newer", created="2026-02-01T00:00:00Z")
TAKEN = Key("team", "older")


def test_the_older_of_two_that_want_the_same_host_gets_it():
    assert conflict(NEWER, OLDER) == TAKEN
    assert conflict(OLDER, NEWER) is None


def test_of_two_created_in_the_same_second_exactly_one_gets_it():
    one, two = scheduled("one"), scheduled("two")
    assert (conflict(one, two) is None) != (conflict(two, one) is None)


def test_an_object_with_a_machine_keeps_the_host():
    holder = scheduled("newer", created="2026-02-01T00:00:00Z", has_machine=True)
    assert conflict(OLDER, holder) == Key("team", "newer")
    assert conflict(holder, OLDER) is None


@pytest.mark.parametrize(
    "peer",
    [
        scheduled("older", killSwitch=True),
        scheduled("older", schedule={"daysOfWeek": ["mon-fri"], "enabled": False}),
        scheduled("older", clusterName=5),
        {**OLDER, "metadata": {**OLDER["metadata"], "deletionTimestamp": "2026-03-01T00:00:00Z"}},
    ],
    ids=["killed", "disabled", "invalid", "being deleted"],
)
def test_an_object_that_wants_no_machine_has_no_claim(peer):
    assert conflict(NEWER, peer) is None


def test_outside_its_window_an_object_has_no_claim_unless_its_machine_still_exists():
    assert conflict(NEWER, OLDER, now=CLOSED) is None
    assert conflict(NEWER, scheduled("older", has_machine=True), now=CLOSED) == TAKEN


def test_a_host_stays_taken_while_a_machine_runs_on_it_although_its_spec_names_another_by_now():
    (host,) = host_terms(OLDER)
    moved = scheduled("older", has_machine=True)
    moved["status"]["hostHash"] = host
    moved["spec"]["infrastructureSpec"]["spec"] = {"address": "192.0.2.8"}
    assert conflict(NEWER, moved) == TAKEN
    claims = Claims(NEWER, moved)
    assert host in claims.change({**moved, "status": {}}), "the controller wakes the objects that wait for it"
    assert claims.outranked_by(NEWER) is None


def test_a_host_is_known_by_what_the_spec_says_of_it_and_by_its_provider_id():
    elsewhere = scheduled("other", clusterName="another")
    assert host_terms(OLDER) == host_terms(elsewhere)
    running = {**OLDER, "status": {"providerID": "remote://192.0.2.7", "machineRef": {"name": "m"}}}
    assert host_terms(running) == [*host_terms(OLDER), "team/demo/remote://192.0.2.7"]


def running_on(provider_id, name, **spec):
    raw = scheduled(name, has_machine=True, **spec)
    raw["spec"]["infrastructureSpec"]["spec"] = {"pool": "racks"}
    raw["status"]["providerID"] = provider_id
    return raw


def test_the_same_provider_id_is_a_conflict_within_one_cluster_only():
    one, two = running_on("metal://7", "one"), running_on("metal://7", "two")
    claims = Claims(one, two, elsewhere := running_on("metal://7", "zoo", clusterName="another"))
    assert claims.outranked_by(two) == Key("team", "one")
    assert claims.outranked_by(elsewhere) is None
    assert claims.hosts.others_on_host(key_of(two), "team/demo/metal://7") == {"uid-one"}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [("RemoteMachine", {"pool": "racks"}), ("AWSMachine", {"instanceType": "m5.large"}), ("RemoteMachine", None)],
    ids=["pool", "cloud", "nothing"],
)
def test_specs_that_name_no_host_are_never_in_conflict(kind, spec):
    pair = [scheduled(name) for name in ("one", "two")]
    for raw in pair:
        raw["spec"]["infrastructureSpec"] |= {"kind": kind, "spec": spec}
    assert [conflict(raw, *pair) for raw in pair] == [None, None]


def test_a_hash_that_an_earlier_version_stored_makes_no_conflict_and_hides_none():
    old = scheduled("older", has_machine=True)
    old["status"]["hostHash"] = "0123456789abcdef0123456789abcdef"
    assert conflict(NEWER, old) == TAKEN
    pooled = running_on("metal://7", "older")
    pooled["status"]["hostHash"] = old["status"]["hostHash"]
    assert host_terms(pooled) == ["team/demo/metal://7"]


def test_a_machine_on_another_host_has_no_claim_to_the_one_that_its_spec_names_by_now():
    moved = scheduled("older", has_machine=True)
    moved["status"]["hostHash"] = "v2-another"
    assert conflict(NEWER, moved) is None


# Clusters


def test_without_a_cluster_there_is_no_claim():
    claims = Claims(OLDER, NEWER)
    claims.clusters.clear()
    assert claims.outranked_by(NEWER) is None
    assert conflict(NEWER, scheduled("older", clusterName="gone")) is None


def test_a_cluster_that_comes_or_goes_changes_the_claims_of_those_that_name_it():
    older = scheduled("older", clusterName="another")
    claims = Claims(older, NEWER)
    assert claims.outranked_by(NEWER) == TAKEN
    claims.clusters.discard(Key("team", "another"))
    assert claims.hosts.invalidate([TAKEN]) == set(host_terms(older))
    assert claims.outranked_by(NEWER) is None
    assert list(claims.hosts.candidates(host_terms(older)[0], OPEN)) == [key_of(NEWER)]
    claims.clusters.add(Key("team", "another"))
    claims.hosts.invalidate([TAKEN, Key("team", "unknown")])
    assert claims.outranked_by(NEWER) == TAKEN


@pytest.mark.parametrize("spec", [{}, {"spec": 5, "status": 5}, {"spec": {"infrastructureSpec": "x"}}])
def test_nonsense_names_no_host(spec):
    assert host_terms({"metadata": {"namespace": "team"}, **spec}) == []


def copies(count, **spec):
    return [scheduled(f"copy-{n:03}", created=f"2026-01-01T00:00:{n % 60:02}Z", **spec) for n in range(count)]


def test_the_first_of_many_claims_to_one_host_is_found_without_reading_all():
    claims = Claims(*copies(300))
    assert [raw for raw in claims.objects.values() if claims.outranked_by(raw) is None] == [
        claims.objects["team", "copy-000"]
    ]
    assert claims.reads == 1


def test_earlier_objects_without_a_valid_claim_are_read_once_and_not_for_every_later_one():
    idle, eager = copies(200, killSwitch=True), [scheduled(f"eager-{n}", created="2026-02-01T00:00:00Z") for n in "abc"]
    claims = Claims(*idle, *eager)
    assert [claims.outranked_by(raw) for raw in eager] == [None, Key("team", "eager-a"), Key("team", "eager-a")]
    assert claims.reads == 201


def test_claims_that_change_one_by_one_are_not_all_evaluated_each_time(monkeypatch):
    idle = copies(400, killSwitch=True)
    claims = Claims()
    evaluated = []
    evaluate = claims.hosts._evaluate

    def counted(entry, now):
        evaluated.append(entry)
        return evaluate(entry, now)

    monkeypatch.setattr(claims.hosts, "_evaluate", counted)
    for raw in reversed(idle):
        claims.objects[key_of(raw)] = raw
        for term in claims.hosts.update(key_of(raw), raw):
            assert list(claims.hosts.candidates(term, OPEN)) == []
    assert len(evaluated) == 400


def test_claims_are_evaluated_again_at_a_boundary_and_when_the_clock_is_set_back():
    claims = Claims(OLDER, NEWER)
    assert claims.outranked_by(NEWER) == TAKEN
    assert claims.outranked_by(NEWER, CLOSED) is None
    assert claims.outranked_by(NEWER, OPEN) == TAKEN


def test_only_a_change_that_affects_claims_names_its_hosts():
    claims = Claims(OLDER, NEWER)
    (term,) = host_terms(OLDER)
    assert claims.change({**OLDER, "status": {"message": "waiting"}}) == ()
    edited = scheduled("older", killSwitch=True)
    edited["metadata"]["generation"] = 2
    assert claims.change(edited) == (term,)
    assert claims.outranked_by(NEWER) is None
    assert claims.change(scheduled("older", has_machine=True)) == (term,)
    assert claims.candidates(NEWER) == [TAKEN]


def test_an_object_that_is_gone_has_no_claim():
    claims = Claims(OLDER, NEWER)
    claims.hosts.update(TAKEN, None)
    assert claims.outranked_by(NEWER) is None
    assert claims.candidates(NEWER) == []
    assert claims.hosts.update(TAKEN, None) == ()


def test_the_next_candidate_is_found_when_the_first_is_gone():
    claims = Claims(OLDER, NEWER)
    (term,) = claims.hosts.update(TAKEN, None)
    assert list(claims.hosts.candidates(term, OPEN, exclude=TAKEN)) == [key_of(NEWER)]
