"""What was decided in a phase, from its events: rules, tasks, removals, marks, names, the close.

The page lists the decisions about public entries, and `verify` those about every entry that was opened.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from datetime import datetime
from itertools import pairwise

from leaderboard import Decision, DecisionKind
from leaderboard.rendering import display_name, quoted
from scoring.printable import printable
from worker.fairness import membership
from worker.fairness.events import PhaseEvent, SubmissionEvent
from worker.fairness.places import Place, taken_off
from worker.fairness.replay import PhaseReplay

DESCRIBED = ("method", "project_url", "publication_url")
TAKEN_OFF = {
    Place.OPEN: "its answer was taken back",
    Place.REFUSED: "its answer was taken back",
    Place.REPLACED: "it was run again as submission {by}",
    Place.TRIAL: "it is taken for a trial of the organizers",
}
"""What took an entry off the board that now has one of these places."""


def public_decisions(replay: PhaseReplay) -> tuple[tuple[Decision, ...], frozenset[int]]:
    """Return the decisions that are published at once, and the submissions of which they are only published if a board ever had these.

    They do not depend on private submissions, and name no task. So they are the same whether all events are known or only those that the
    reveal opens.
    """
    newest = {entry: history.events[-1] for entry, history in replay.submissions.items()}
    public = {
        entry
        for entry, facts in newest.items()
        if facts.public and facts.answered and not facts.own and entry in replay.scores
    }
    others = frozenset(facts.submission for entry, facts in newest.items() if entry not in public)
    return decisions(replay, public), others


def decisions(replay: PhaseReplay, public: Collection[str] | None = None) -> tuple[Decision, ...]:
    """Return what was decided, oldest first.

    Args:
        replay: The phase.
        public: The entries that decisions about all entries may depend on; None for all that are open.
    """
    entries = replay.submissions.keys() if public is None else public
    listed = [
        *_changes(replay, entries),
        *_entries(replay, entries),
        *_teams(replay, entries),
        *(_decision(note.at, DecisionKind.OTHER, note.text.rstrip(".")) for note in replay.notes),
    ]
    return tuple(sorted(listed, key=lambda decision: (decision.at, decision.text)))


def _decision(
    at: datetime, kind: DecisionKind, text: str, reason: str = "", submission: int | None = None
) -> Decision:
    text, reason = (" ".join(printable(words).split()) for words in (text, reason))
    return Decision(at=at, kind=kind, text=text, reason=reason, submission=submission)


def _changes(replay: PhaseReplay, entries: Collection[str]) -> Iterator[Decision]:
    scored = [replay.scores[entry].events[0].at for entry in entries if entry in replay.scores]
    for earlier, later in pairwise(replay.decisions.events):
        again = min(scored, default=later.at) < later.at  # before the first score, no rank depends on it
        for kind, text in (
            (DecisionKind.RESCORE, _scoring(earlier, later) if again else ""),
            (DecisionKind.RULE, _rules(earlier, later)),
            (DecisionKind.OTHER, _close(earlier, later)),
        ):
            if text:
                yield _decision(later.at, kind, text, later.reason)


def _rules(earlier: PhaseEvent, later: PhaseEvent) -> str:
    names = earlier.rules.changed(later.rules)
    before, after = (event.rules.model_dump(mode="json") for event in (earlier, later))
    values = [f"{name}: {json.dumps(before[name])} to {json.dumps(after[name])}" for name in names]
    return f"the rules changed ({', '.join(values)})" if values else ""


def _scoring(earlier: PhaseEvent, later: PhaseEvent) -> str:
    changed = {"the tasks": later.tasks != earlier.tasks, "the protocol": later.protocol != earlier.protocol}
    what = " and ".join(name for name, differs in changed.items() if differs)
    return f"{what} changed, and all submissions were scored again" if what else ""


def _close(earlier: PhaseEvent, later: PhaseEvent) -> str:
    if later.closed_at == earlier.closed_at:
        return ""
    if later.closed_at is None:
        return "the board was reopened"
    closed = minute(later.closed_at)
    return "the board was closed" if closed == minute(later.at) else f"the board was closed as of {closed}"


def _entries(replay: PhaseReplay, entries: Collection[str]) -> Iterator[Decision]:
    renamed: dict[tuple[str, str], Decision] = {}
    ranked = [
        event.at
        for entry in entries
        for event in replay.registered[entry].events
        if event.answered and not event.own
    ]
    first_ranked = min(ranked, default=replay.end)
    for entry, history in replay.registered.items():
        for earlier, later in zip([None, *history.events], history.events, strict=False):
            for text, reason in _moved(replay, earlier, later, first_ranked):
                name = f"submission {later.submission} of {team_of(later)}"
                yield _decision(later.at, DecisionKind.ENTRY, f"{name} {text}", reason, later.submission)
            before, team = team_of(earlier or later), team_of(later)
            if before != team and entry in entries:
                text = f"team {before} is now called {team}"
                renamed.setdefault((before, team), _decision(later.at, DecisionKind.OTHER, text))
    yield from renamed.values()


def _teams(replay: PhaseReplay, entries: Collection[str]) -> Iterator[Decision]:
    """Yield the decisions about whole teams, by name only if the team had sent one of the entries before."""
    for team, history in replay.teams.items():
        for event in history.events:
            sent = (replay.registered[entry].at(event.at) for entry in replay.registered if entry in entries)
            names = [team_of(facts) for facts in sent if facts is not None and facts.team_key == team]
            what = "was disqualified with all its" if event.disqualified else "was reinstated with all its"
            text = f"team {names[-1] if names else f'number {team}'} {what} submissions"
            yield _decision(event.at, DecisionKind.ENTRY, text, event.reason)


def team_of(facts: SubmissionEvent) -> str:
    """Return the team that sent a submission, for a sentence."""
    return quoted(display_name(facts.team or ""))


def _moved(
    replay: PhaseReplay, earlier: SubmissionEvent | None, later: SubmissionEvent, first_ranked: datetime
) -> Iterator[tuple[str, str]]:
    """Yield what took a submission off the board, put it back, or made it a baseline, and why."""
    rules = replay.rules(later.at)
    is_baseline = rules is not None and membership.is_baseline(later, rules)
    if later.removed is not None and (earlier is None or earlier.removed != later.removed):
        yield "was disqualified", later.removed
    if is_baseline and later.answered and first_ranked < later.at and not (earlier and earlier.answered):
        yield "came as a late baseline (entries were ranked already)", later.reason
    if later.public != (later.public_at_first if earlier is None else earlier.public):
        yield f"was made {'public' if later.public else 'private'}", later.reason
    if earlier is None:
        return
    if earlier.removed is not None and later.removed is None:
        yield "was put back", later.reason
    off = taken_off(later, rules)
    if off and off.place in TAKEN_OFF and taken_off(earlier, replay.rules(earlier.at)) is None:
        yield f"was taken off later boards: {TAKEN_OFF[off.place].format(by=off.by)}", ""
    if any(getattr(earlier, name) != getattr(later, name) for name in DESCRIBED):
        yield "was given another method or other links", later.reason
    if is_baseline and rules and earlier.answered and not membership.is_baseline(earlier, rules):
        yield "became a baseline", later.reason


def minute(moment: datetime) -> str:
    """Write a time to the minute."""
    return moment.isoformat()[:16]
