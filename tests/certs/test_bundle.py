from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certs.bundle import (
    CA_KEY,
    LEAF_CERTIFICATE,
    LEAF_KEY,
    PUBLISHED_AT,
    Bundle,
    BundleState,
    Policy,
    RotationRequest,
    UnreadableBundleError,
    advance,
    decode,
    first_bundle,
    requeue_at,
)
from certs.issue import names_of, signed_by

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("5spot-webhook.5spot-system.svc", "5spot-webhook.5spot-system.svc.cluster.local", "127.0.0.1")
POLICY = Policy()
DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def fresh() -> Bundle:
    return first_bundle(NAMES, START, POLICY)


def at(now: datetime, *, published: bool = True, requested: RotationRequest | None = None) -> BundleState:
    return BundleState(now=now, names=NAMES, published=published, requested=requested)


def test_a_fresh_bundle_serves_every_name_under_its_own_authority(fresh: Bundle):
    leaf = fresh.leaf.parsed
    assert names_of(leaf) == set(NAMES)
    assert signed_by(leaf, fresh.authority.parsed)
    assert fresh.trusted == fresh.authority.certificate


def test_an_authority_lives_ten_years_and_a_leaf_one(fresh: Bundle):
    assert fresh.authority.parsed.not_valid_after_utc == START + timedelta(days=3650)
    assert fresh.leaf.parsed.not_valid_after_utc == START + timedelta(days=365)


def test_a_certificate_is_valid_for_a_clock_that_is_minutes_behind(fresh: Bundle):
    assert fresh.leaf.parsed.not_valid_before_utc <= START - timedelta(minutes=5)


def test_nothing_is_due_on_the_day_after(fresh: Bundle):
    assert advance(fresh, at(START + DAY), POLICY) is fresh


def test_a_leaf_is_replaced_at_two_thirds_of_its_life_and_not_before(fresh: Bundle):
    due = START + timedelta(days=365) * (2 / 3)
    assert advance(fresh, at(due - timedelta(seconds=1)), POLICY) is fresh
    renewed = advance(fresh, at(due), POLICY)
    assert renewed.leaf != fresh.leaf
    assert renewed.authority == fresh.authority
    assert requeue_at(fresh, POLICY) == due


def test_a_leaf_that_lacks_a_name_is_replaced_at_once(fresh: Bundle):
    wanted = (*NAMES, "webhook.example.org")
    renewed = advance(fresh, replace(at(START + DAY), names=wanted), POLICY)
    assert names_of(renewed.leaf.parsed) == set(wanted)


def test_a_leaf_of_another_authority_is_replaced_at_once(fresh: Bundle):
    another = first_bundle(NAMES, START, POLICY)
    repaired = advance(replace(fresh, leaf=another.leaf), at(START + DAY), POLICY)
    assert signed_by(repaired.leaf.parsed, fresh.authority.parsed)


def test_a_leaf_never_outlives_its_authority():
    policy = Policy(authority_life=timedelta(days=100))
    bundle = first_bundle(NAMES, START, policy)
    assert bundle.leaf.parsed.not_valid_after_utc == bundle.authority.parsed.not_valid_after_utc


def test_a_new_authority_is_trusted_before_it_signs_and_the_old_one_after_it_stopped(fresh: Bundle):
    due = START + timedelta(days=3650) * (2 / 3)
    fresh = replace(fresh, leaf=advance(fresh, at(due - DAY), POLICY).leaf)

    announced = advance(fresh, at(due), POLICY)
    assert announced.leaf == fresh.leaf
    assert announced.coming is not None
    assert fresh.authority.certificate in announced.trusted
    assert announced.coming.certificate in announced.trusted

    unseen = advance(announced, at(due + DAY, published=False), POLICY)
    assert unseen is announced

    seen = advance(announced, at(due + DAY), POLICY)
    assert seen.published_at == due + DAY
    assert advance(seen, at(due + DAY + POLICY.settle - timedelta(seconds=1)), POLICY) is seen

    switched = advance(seen, at(due + DAY + POLICY.settle), POLICY)
    assert switched.authority == announced.coming
    assert signed_by(switched.leaf.parsed, announced.coming.parsed)
    assert switched.trusted == announced.trusted

    assert switched.switched_at is not None
    assert requeue_at(switched, POLICY) == switched.switched_at + POLICY.retire
    alone = advance(switched, at(requeue_at(switched, POLICY)), POLICY)
    assert alone.trusted == switched.authority.certificate
    assert alone.leaf == switched.leaf


def test_an_expired_authority_is_replaced_together_with_its_leaf(fresh: Bundle):
    late = START + timedelta(days=4000)
    renewed = advance(fresh, at(late), POLICY)
    assert renewed.authority != fresh.authority
    assert signed_by(renewed.leaf.parsed, renewed.authority.parsed)
    assert renewed.trusted == renewed.authority.certificate


def test_a_person_can_ask_for_a_leaf_or_an_authority_ahead_of_time(fresh: Bundle):
    assert advance(fresh, at(START + DAY, requested=RotationRequest.LEAF), POLICY).leaf != fresh.leaf
    assert advance(fresh, at(START + DAY, requested=RotationRequest.CA), POLICY).coming is not None


def test_a_rotation_asked_for_while_an_authority_is_going_waits(fresh: Bundle):
    going = replace(fresh, going=fresh.authority.certificate, switched_at=START)
    assert advance(going, at(START + timedelta(hours=1), requested=RotationRequest.CA), POLICY) is going


def test_what_is_written_is_read_back_at_every_stage(fresh: Bundle):
    announced = advance(fresh, at(START + DAY, requested=RotationRequest.CA), POLICY)
    seen = advance(announced, at(START + DAY), POLICY)
    switched = advance(seen, at(START + DAY + POLICY.settle), POLICY)
    for bundle in (fresh, announced, seen, switched):
        assert decode(bundle.encoded()) == bundle


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        ({LEAF_KEY: None}, "'tls.key' is missing"),
        ({CA_KEY: b"nonsense"}, "cannot be read"),
        ({LEAF_CERTIFICATE: b"\xff\xfe"}, "cannot be read"),
        ({"next-ca.crt": b"x", "next-ca.key": b"y"}, "cannot be read"),
        ({PUBLISHED_AT: b"yesterday"}, "cannot be read"),
        ({PUBLISHED_AT: b"2026-01-01T00:00:00"}, "cannot be read"),
    ],
)
def test_a_spoilt_secret_is_named_as_such(fresh: Bundle, spoil: dict[str, bytes | None], says: str):
    data = {name: part for name, part in (fresh.encoded() | spoil).items() if part is not None}
    with pytest.raises(UnreadableBundleError, match=says):
        decode(data)


def test_a_key_of_another_certificate_is_not_accepted(fresh: Bundle):
    other = first_bundle(NAMES, START, POLICY)
    with pytest.raises(UnreadableBundleError, match="does not belong"):
        decode(fresh.encoded() | {LEAF_KEY: other.leaf.key})


def test_private_keys_never_show_in_a_representation(fresh: Bundle):
    assert "PRIVATE" not in repr(fresh)
    assert fresh.leaf.key.decode() not in repr(fresh)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 900), st.booleans(), st.sampled_from([None, *RotationRequest])), max_size=12))
def test_whatever_happens_the_leaf_served_is_one_that_was_trusted_beforehand(steps):
    bundle, now, published = first_bundle(NAMES, START, POLICY), START, b""
    for days, sees, requested in steps:
        now += timedelta(days=days)
        situation = BundleState(now, NAMES, published == bundle.trusted, requested)
        following = advance(bundle, situation, POLICY)
        survived = bundle.authority.parsed.not_valid_after_utc > now
        if survived and following.leaf != bundle.leaf:
            assert following.authority.certificate in bundle.trusted
        assert following.leaf.parsed.not_valid_after_utc > now
        bundle = following
        published = bundle.trusted if sees else published
