"""The organizers' decisions during a phase: when, why, and which submissions they kept off the board."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from leaderboard import Board
from leaderboard.ranking import board as boards
from worker.fairness import membership
from worker.fairness.verify.replay import Register
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

CHECK = "decisions"


def decisions(phase: RevealedPhase, registers: Mapping[str, Register]) -> Verdict:
    """Report the organizers' decisions: rules, removals, choices, hidden teams, the close.

    Args:
        phase: The phase.
        registers: The registers of all revealed phases, for rules that refer to another one.
    """
    register = phase.register
    rules, decided = register.rules(register.end), register.decisions.at(register.end)
    if rules is None or decided is None:
        return phase.contradicted(CHECK, "no rules are registered")
    chosen = {int(team): submission for team, submission in decided["chosen"].items()}
    if phase.rules != rules.for_board(epsilon=phase.rules.epsilon, chosen=chosen):
        return phase.contradicted(CHECK, "the rules that were revealed are not the last ones in the register")
    told = [
        *_changes(register),
        *_removals(register),
        *_marks(register),
        *_hidden(phase, registers),
        *_after_the_close(register),
    ]
    told += [f"on {note['at'][:16]} it was noted: {str(note['text']).rstrip('.')}" for note in register.notes]
    if not told:
        return phase.consistent(CHECK, "its rules never changed, and no entry was taken off the board")
    return phase.consistent(CHECK, f"decisions by the organizers: {'; '.join(told)}")


def _changes(register: Register) -> Iterator[str]:
    for earlier, later in pairwise(register.decisions.events):
        before, after = earlier["rules"], later["rules"]
        rules = [name for name in {**after, **before} if after.get(name) != before.get(name)]
        values = ", ".join(
            f"{name}: {json.dumps(before.get(name))} to {json.dumps(after.get(name))}" for name in rules
        )
        found = [f"the rules {', '.join(rules)} changed ({values})"] if rules else []
        if (later["tasks"], later["protocol"]) != (earlier["tasks"], earlier["protocol"]):
            again = any(
                scores.moments[0] < datetime.fromisoformat(later["at"]) for scores in register.scores.values()
            )
            then = ", and all submissions were scored again" if again else " before the first score"
            found.append(f"the tasks or the protocol changed{then}")
        if later["chosen"] != earlier["chosen"]:
            chosen = ", ".join(
                str(one) for team, one in later["chosen"].items() if earlier["chosen"].get(team) != one
            )
            found.append(
                f"the organizers chose which submission of a team counts ({chosen or 'none anymore'})"
            )
        if later["frozen_at"] != earlier["frozen_at"]:
            found.append(_close(later["frozen_at"], later["at"]))
        if found:
            reason = f" ({later['reason']})" if later["reason"] else ""
            yield f"{', '.join(found)} on {later['at'][:16]}{reason}"


def _close(frozen_at: str | None, decided_at: str) -> str:
    if frozen_at is None:
        return "the board was reopened"
    backdated = f" as of {frozen_at[:16]}" if frozen_at[:16] != decided_at[:16] else ""
    return f"the board was closed{backdated}"


def _removals(register: Register) -> Iterator[str]:
    for history in register.submissions.values():
        for earlier, later in pairwise([None, *history.events]):
            if earlier is not None and later is not None and _is_back(earlier, later):
                why = f" ({later['reason']})" if later.get("reason") else ""
                yield f"submission {later['submission']} of {later['team']} was put back on {later['at'][:16]}{why}"
            if later is None or (reason := _reason(register, later)) is None:
                continue
            before = None if earlier is None else _reason(register, earlier)
            had_place = earlier is not None and before is None
            if had_place or membership.taken_off(later) not in (None, before):
                yield f"submission {later['submission']} of {later['team']} was taken off on {later['at'][:16]}: {reason}"


def _is_back(earlier: membership.Facts, later: membership.Facts) -> bool:
    """Return whether the reason for which a submission was taken off no longer holds."""
    return membership.taken_off(earlier) is not None and membership.taken_off(later) is None


def _marks(register: Register) -> Iterator[str]:
    """Report the submissions that became baselines, which have no rank, and the teams that got another name."""
    named: dict[tuple[str, str], str] = {}
    for history in register.submissions.values():
        for earlier, later in pairwise(history.events):
            if later["baseline"] and not earlier["baseline"]:
                yield f"submission {later['submission']} of {later['team']} was marked as a baseline on {later['at'][:16]}"
            if later["team"] != earlier["team"]:
                named.setdefault((str(earlier["team"]), str(later["team"])), later["at"])
    for (before, after), at in named.items():
        yield f"team {before} has been called {after} since {at[:16]}"


def _reason(register: Register, facts: membership.Facts) -> str | None:
    """Return what keeps a submission off the board by the rules at that time; before there are rules, what takes it off."""
    rules = register.rules(datetime.fromisoformat(facts["at"]))
    return membership.taken_off(facts) if rules is None else membership.kept_off(facts, rules)


def _hidden(phase: RevealedPhase, registers: Mapping[str, Register]) -> Iterator[str]:
    """Report the teams that the final rules hide, and the places that this has cost them."""
    rules = phase.register.rules(phase.register.end)
    teams = set() if rules is None else set(rules.hidden_teams)
    board = without_hiding(phase, registers) if teams else None
    for row in () if board is None else board.standings:
        if row.team in teams:
            yield f"the rules hide {row.team}, which would be at rank {row.rank} with mean Q {row.q_mean:.3f}"


def without_hiding(phase: RevealedPhase, registers: Mapping[str, Register]) -> Board | None:
    """Return the final board as it would be if no team were hidden; None if it cannot be computed."""
    end = phase.register.end
    if phase.register.unknown_phase(registers) is not None:
        return None
    snapshot = phase.register.snapshot(end, epsilon=phase.epsilon_at(end), elsewhere=registers)
    if snapshot is None:
        return None
    shown = replace(snapshot, rules=replace(snapshot.rules, hidden_teams=frozenset()))
    return boards.next_board(shown, (), at=end, replicates=1)


def _after_the_close(register: Register) -> Iterator[str]:
    """Report the submissions that would count if the board had not been closed before."""
    rules, frozen_at = register.rules(register.end), register.decisions.events[-1]["frozen_at"]
    if rules is None or frozen_at is None:
        return
    closed = datetime.fromisoformat(frozen_at)
    for entry, history in register.submissions.items():
        facts, then = history.events[-1], history.at(closed)
        counts = membership.kept_off(facts, rules) is None and register.score(entry, register.end) is not None
        if counts and (then is None or not then["answered"] or register.score(entry, closed) is None):
            yield f"submission {facts['submission']} of {facts['team']} was answered after the board was closed"
