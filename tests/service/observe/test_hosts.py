from datetime import UTC, datetime

import pytest

from crds.providers import DEFAULT_POLICY
from service.decide.hosts import DEFAULT_IDENTITIES
from service.decide.intent import read_intent
from service.observe import hosts
from service.observe.hosts import Hosts, Sources, rank_of
from service.runtime.key import Key
from tests.e2e.manifests import machine

OPEN = datetime(2026, 3, 6, 10, tzinfo=UTC)
CLOSED = datetime(2026, 3, 6, 20, tzinfo=UTC)


def scheduled(name="desk", *, created="2026-01-01T00:00:00Z", has_machine=False, **spec):
    raw = machine(name, infrastructure={"address": "192.0.2.7"}, **spec)
    raw["metadata"] |= {"namespace": "team", "uid": f"uid-{name}", "creationTimestamp": created}
    return raw | {"status": {"machineRef": {"name": f"{name}-machine"}}} if has_machine else raw


def host_terms(raw):
    return list(hosts.host_terms(DEFAULT_IDENTITIES, raw))


def conflict(mine, *peers, now=OPEN):
    return Line(mine, *peers).better(mine, now)


class Line:
    """Those who name the same host, and how often one was read to find out whether it wants it."""

    def __init__(self, *objects):
        self.objects = {key_of(raw): raw for raw in objects}
        self.reads = 0
        self.clusters = {Key("team", "demo"), Key("team", "another")}
        self.hosts = Hosts(DEFAULT_IDENTITIES, Sources(self.objects.get, self.read, self.clusters.__contains__))
        for key, raw in self.objects.items():
            self.hosts.saw(key, raw)

    def read(self, raw):
        self.reads += 1
        return read_intent(raw, DEFAULT_POLICY)

    def change(self, raw):
        self.objects[key_of(raw)] = raw
        return self.hosts.saw(key_of(raw), raw)

    def better(self, mine, now=OPEN):
        return self.hosts.better(key_of(mine), rank_of(mine), host_terms(mine), now)

    def claimants(self, but, now=OPEN):
        (term,) = host_terms(but)
        return list(self.hosts.claimants(term, now, but=key_of(but)))


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


def test_who_has_a_machine_keeps_the_host():
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
def test_who_does_not_want_a_machine_has_no_claim(peer):
    assert conflict(NEWER, peer) is None


def test_outside_its_window_nobody_has_a_claim_unless_its_machine_is_still_there():
    assert conflict(NEWER, OLDER, now=CLOSED) is None
    assert conflict(NEWER, scheduled("older", has_machine=True), now=CLOSED) == TAKEN


def test_a_host_stays_taken_while_a_machine_runs_on_it_although_its_spec_names_another_by_now():
    (host,) = host_terms(OLDER)
    moved = scheduled("older", has_machine=True)
    moved["status"]["hostHash"] = host
    moved["spec"]["infrastructureSpec"]["spec"] = {"address": "192.0.2.8"}
    assert conflict(NEWER, moved) == TAKEN
    line = Line(NEWER, moved)
    assert host in line.change({**moved, "status": {}}), "who waits for it is woken"
    assert line.better(NEWER) is None


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
    line = Line(one, two, elsewhere := running_on("metal://7", "zoo", clusterName="another"))
    assert line.better(two) == Key("team", "one")
    assert line.better(elsewhere) is None
    assert line.hosts.sharing(key_of(two), "team/demo/metal://7") == {"uid-one"}


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
    line = Line(OLDER, NEWER)
    line.clusters.clear()
    assert line.better(NEWER) is None
    assert conflict(NEWER, scheduled("older", clusterName="gone")) is None


def test_a_cluster_that_comes_or_goes_changes_the_claims_of_those_that_name_it():
    older = scheduled("older", clusterName="another")
    line = Line(older, NEWER)
    assert line.better(NEWER) == TAKEN
    line.clusters.discard(Key("team", "another"))
    assert line.hosts.reconsider([TAKEN]) == set(host_terms(older))
    assert line.better(NEWER) is None
    assert list(line.hosts.claimants(host_terms(older)[0], OPEN)) == [key_of(NEWER)]
    line.clusters.add(Key("team", "another"))
    line.hosts.reconsider([TAKEN, Key("team", "unknown")])
    assert line.better(NEWER) == TAKEN


@pytest.mark.parametrize("spec", [{}, {"spec": 5, "status": 5}, {"spec": {"infrastructureSpec": "x"}}])
def test_nonsense_names_no_host(spec):
    assert host_terms({"metadata": {"namespace": "team"}, **spec}) == []


def crowd(count, **spec):
    return [scheduled(f"copy-{n:03}", created=f"2026-01-01T00:00:{n % 60:02}Z", **spec) for n in range(count)]


def test_in_a_crowd_for_one_host_each_learns_who_goes_first_without_reading_all():
    line = Line(*crowd(300))
    assert [raw for raw in line.objects.values() if line.better(raw) is None] == [line.objects["team", "copy-000"]]
    assert line.reads == 1


def test_those_in_front_who_want_nothing_are_read_once_and_not_for_everybody_behind_them():
    idle, eager = crowd(200, killSwitch=True), [scheduled(f"eager-{n}", created="2026-02-01T00:00:00Z") for n in "abc"]
    line = Line(*idle, *eager)
    assert [line.better(raw) for raw in eager] == [None, Key("team", "eager-a"), Key("team", "eager-a")]
    assert line.reads == 201


def test_a_crowd_that_changes_one_by_one_is_not_gone_through_each_time(monkeypatch):
    idle = crowd(400, killSwitch=True)
    line = Line()
    judged = []
    judge = line.hosts._judge

    def counted(entry, now):
        judged.append(entry)
        return judge(entry, now)

    monkeypatch.setattr(line.hosts, "_judge", counted)
    for raw in reversed(idle):
        line.objects[key_of(raw)] = raw
        for term in line.hosts.saw(key_of(raw), raw):
            assert list(line.hosts.claimants(term, OPEN)) == []
    assert len(judged) == 400


def test_who_wants_the_host_is_found_out_anew_at_a_boundary_and_when_a_clock_is_set_back():
    line = Line(OLDER, NEWER)
    assert line.better(NEWER) == TAKEN
    assert line.better(NEWER, CLOSED) is None
    assert line.better(NEWER, OPEN) == TAKEN


def test_a_change_that_matters_to_others_is_told_and_any_other_is_not():
    line = Line(OLDER, NEWER)
    (term,) = host_terms(OLDER)
    assert line.change({**OLDER, "status": {"message": "waiting"}}) == ()
    edited = scheduled("older", killSwitch=True)
    edited["metadata"]["generation"] = 2
    assert line.change(edited) == (term,)
    assert line.better(NEWER) is None
    assert line.change(scheduled("older", has_machine=True)) == (term,)
    assert line.claimants(NEWER) == [TAKEN]


def test_who_is_gone_stands_in_no_line():
    line = Line(OLDER, NEWER)
    line.hosts.saw(TAKEN, None)
    assert line.better(NEWER) is None
    assert line.claimants(NEWER) == []
    assert line.hosts.saw(TAKEN, None) == ()


def test_the_last_in_line_is_told_when_the_one_before_him_goes():
    line = Line(OLDER, NEWER)
    (term,) = line.hosts.saw(TAKEN, None)
    assert list(line.hosts.claimants(term, OPEN, but=TAKEN)) == [key_of(NEWER)]
