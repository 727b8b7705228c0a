from service.act.backlog import Backlog


def filled(most, **lanes):
    backlog: Backlog[str] = Backlog(most)
    for namespace, count in lanes.items():
        for number in range(count):
            backlog.append(namespace, f"{namespace}{number}")
    return backlog


def taken(backlog):
    return [backlog.popleft() for _ in range(len(backlog))]


def test_namespaces_take_turns_and_each_keeps_its_order():
    assert taken(filled(100, a=4, b=2)) == ["a0", "b0", "a1", "b1", "a2", "a3"]


def test_the_next_entry_can_be_read_before_it_is_taken():
    backlog = filled(100, a=2)
    assert (backlog.first(), backlog.popleft(), backlog.first()) == ("a0", "a0", "a1")


def test_a_full_backlog_drops_from_the_namespace_with_most_entries():
    backlog = filled(5, a=5, b=2)
    assert sorted(taken(backlog)) == ["a2", "a3", "a4", "b0", "b1"]
    assert len(backlog) == 0
