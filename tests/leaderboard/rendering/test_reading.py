"""What is published of a phase is enough to render all of its files again, byte for byte, without its register."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.rendering import HistoryLine, PhaseDocument, read_site, render
from leaderboard.rules import PhaseRules, Selection
from leaderboard.snapshot import Decision, DecisionKind, Site, WaitingTeam
from tests.leaderboard.harness.phases import START, steady
from tests.leaderboard.harness.played import PlayedPhase
from tests.leaderboard.harness.revealed import revealed_site
from tests.leaderboard.harness.site_fixtures import (
    methods_site,
    moving_site,
    phase_site,
    simple_site,
)

HISTORY = "leaderboard/history.jsonl"


def read_again(site: Site, files: Mapping[str, bytes]) -> Site:
    """Return the site as it is read from its published files."""
    lines = [HistoryLine.model_validate_json(line) for line in files[HISTORY].splitlines()]
    phases = []
    for phase in site.phases:
        document = PhaseDocument.model_validate_json(files[f"leaderboard/{phase.codename}.json"])
        phases.append(read_site(document, [line for line in lines if line.phase == phase.codename]))
    return replace(site, phases=tuple(phases))


def assert_same(site: Site) -> None:
    """Check that what is read from the published files renders the same files."""
    files = render(site, readme=None)
    again = render(read_again(site, files), readme=None)
    assert [path for path in files if files[path] != again.get(path)] == []
    assert again.keys() == files.keys()


@pytest.mark.parametrize("hostile", ["A (2)", "a|b", "Ａ", "=1+1", "Team\u202e"])
def test_a_site_is_read_from_its_files(hostile: str) -> None:
    """Moves, methods, baselines, closed and revealed phases, hostile names."""
    waiting = (WaitingTeam(key=(1, ""), team=hostile, submissions=2, last_submitted_at=START),)
    decision = Decision(at=START + timedelta(hours=1), kind=DecisionKind.RULE, text="the rules changed")
    for site in (
        moving_site(),
        methods_site([hostile, "", "mean"]),
        simple_site([hostile, "A", "Ａ", "a"]),
        revealed_site(),
        Site(title="T", phases=(phase_site(waiting=waiting, decisions=(decision,)),)),
    ):
        assert_same(site)


NAMES = st.sampled_from(["A", "a", "Α", "A (2)", "Beta", "", "x" * 90])


@given(st.lists(st.tuples(st.integers(1, 4), NAMES, st.integers(-5, 40), st.integers(0, 3)), max_size=12))
def test_any_history_is_read_from_its_files(steps: list[tuple[int, str, int, int]]) -> None:
    """Also with teams that get another name, which is another team's, and with rules that change how values are shown."""
    phase = PlayedPhase("ab", codename="dev")
    for number, (team, name, mean, decimals) in enumerate(steps):
        at = START + timedelta(hours=number)
        phase.receive(
            steady(number + 1, team, mean, 3, team=name, method=name, baseline=team == 4, submitted_at=at)
        )
        ladder = {"selection": Selection.LADDER, "ladder_step": 1.5} if decimals == 3 else {}
        renamed = tuple(
            replace(entry, team=name) if entry.team_key == team else entry for entry in phase.snapshot.entries
        )
        rules = PhaseRules(decimals=decimals, replicates=100, **ladder)
        phase.snapshot = replace(phase.snapshot, rules=rules, entries=renamed)
        phase.make_board(at)
    assert_same(phase.site("T"))


def test_a_restored_state_goes_on_after_an_older_board() -> None:
    """The lines of boards that the restored state does not know stay in the history, and its own ones follow them."""
    site = moving_site()
    phase = site.phases[0]
    published = render(site, readme=None)
    restored = replace(site, phases=(replace(phase, history=phase.history[:-4]), *site.phases[1:]))
    files = render(restored, readme=None, history=published[HISTORY])
    again = render(read_again(restored, files), readme=None, history=files[HISTORY])
    assert again == files
