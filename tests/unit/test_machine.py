"""The kernel: an edge answers, a machine checks itself and draws itself."""

from enum import Enum

import pytest

from nexus.states.machine import Edge, Machine, Verdict


class Door(Enum):
    SHUT = "shut"
    OPEN = "open"
    LOCKED = "locked"


OPEN = Edge("open", {Door.SHUT}, Door.OPEN, {Door.OPEN})
SHUT = Edge("shut", [Door.OPEN], Door.SHUT)
LOCK = Edge("lock", (Door.SHUT, Door.OPEN), Door.LOCKED)


def test_an_edge_applies_skips_or_refuses_by_its_states() -> None:
    assert OPEN.decide(Door.SHUT) is Verdict.APPLY
    assert OPEN.decide(Door.OPEN) is Verdict.SKIP
    assert OPEN.decide(Door.LOCKED) is Verdict.REFUSE


def test_an_edge_without_skips_refuses_its_own_target() -> None:
    assert SHUT.decide(Door.SHUT) is Verdict.REFUSE


def test_edges_are_compared_by_value() -> None:
    assert Edge("open", [Door.SHUT], Door.OPEN, [Door.OPEN]) == OPEN
    assert hash(Edge("open", [Door.SHUT], Door.OPEN, [Door.OPEN])) == hash(OPEN)
    with pytest.raises(AttributeError):
        OPEN.verb = "close"  # type: ignore[misc]


def test_a_machine_with_the_same_verb_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="a verb is listed twice"):
        Machine("door", Door, Door.SHUT, (OPEN, SHUT, LOCK, Edge("open", {Door.LOCKED}, Door.OPEN)))


def test_an_edge_that_both_applies_and_skips_is_refused() -> None:
    muddled = Edge("lock", {Door.SHUT, Door.OPEN}, Door.LOCKED, {Door.OPEN})
    with pytest.raises(ValueError, match=r"\['lock'\] both apply and skip"):
        Machine("door", Door, Door.SHUT, (OPEN, SHUT, muddled))


def test_a_state_that_no_way_leads_to_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no edge leads to \['locked'\]"):
        Machine("door", Door, Door.SHUT, (OPEN, SHUT))


def test_a_state_that_only_unreachable_states_lead_to_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no edge leads to \['locked', 'open'\]"):
        Machine(
            "door",
            Door,
            Door.SHUT,
            (Edge("open", {Door.LOCKED}, Door.OPEN), Edge("lock", {Door.OPEN}, Door.LOCKED)),
        )


@pytest.fixture
def door() -> Machine[Door]:
    return Machine("door", Door, Door.SHUT, (OPEN, SHUT, LOCK))


def test_a_machine_lists_its_edges_and_every_legal_step(door: Machine[Door]) -> None:
    assert list(door) == [OPEN, SHUT, LOCK]
    assert door.reachable() == set(Door)
    assert door.steps() == [
        (Door.SHUT, Door.OPEN),
        (Door.SHUT, Door.LOCKED),
        (Door.OPEN, Door.SHUT),
        (Door.OPEN, Door.LOCKED),
    ]


def test_a_step_that_two_verbs_share_is_listed_once() -> None:
    kick = Edge("kick", {Door.SHUT}, Door.OPEN)
    machine = Machine("door", Door, Door.SHUT, (OPEN, kick, LOCK))
    assert machine.steps().count((Door.SHUT, Door.OPEN)) == 1


def test_the_matrix_shows_every_cell(door: Machine[Door]) -> None:
    assert door.matrix() == [
        ["verb", "shut", "open", "locked"],
        ["open", "→ open", "skip", ""],
        ["shut", "", "→ shut", ""],
        ["lock", "→ locked", "→ locked", ""],
    ]


def test_the_diagram_shows_every_step(door: Machine[Door]) -> None:
    assert door.mermaid().splitlines() == [
        "stateDiagram-v2",
        "    [*] --> shut",
        "    shut --> open: open",
        "    open --> shut: shut",
        "    shut --> locked: lock",
        "    open --> locked: lock",
    ]
