"""Checks that what is registered about a submission fits together: its facts, its scores, and the value that was shown.

The register ties events to a submission by a pseudonym. If a score could be under another submission's pseudonym, or a permanent fact could
change, one team could get the credit for another's submission.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from scoring.protocol import ids_hash
from scoring.quality import mean_quality, shown
from worker.fairness import events, membership
from worker.fairness.ladder import AFTER_THE_CLOSE, ShownValue, ladders
from worker.fairness.verify.replay import History
from worker.fairness.verify.revealed import RevealedPhase, label_rows
from worker.fairness.verify.verdict import Verdict

CHECK = "facts"
FIXED = ("submission", "team_key", "submitted_at", "public_at_first")  # as first seen; these never change
ONCE_KNOWN = ("file", "content")
# a score repeats these as they were when it was registered
BOUND = ("submission", "team_key", "team", "public_at_first")


def belong(phase: RevealedPhase) -> Verdict:
    """Check that facts and scores of every open entry fit together."""
    for look in _LOOKS:
        for fault in look(phase):
            return phase.contradicted(CHECK, fault)
    return phase.consistent(
        CHECK,
        "the scores and the value shown for every entry belong to its submission, team and file",
    )


def _openings(phase: RevealedPhase) -> Iterator[str]:
    """Find entries of another phase, entries that are both open and closed, and two entries of one submission."""
    register = phase.register
    for _, fields in phase.events:
        if fields["phase"] != (None if fields["kind"] == events.CHALLENGE else phase.name):
            yield f"the event {fields['kind']} of {fields['at']} is of another phase"
    for entry in sorted(register.private & {*register.submissions, *register.scores}):
        yield f"entry {entry} was revealed as private in one place and in full in another"
    entries: dict[int, str] = {}
    for entry, history in register.submissions.items():
        submission = history.events[0]["submission"]
        if entries.setdefault(submission, entry) != entry:
            yield f"submission {submission} is registered as two entries"


def _changes(phase: RevealedPhase) -> Iterator[str]:
    """Find permanent facts that have changed."""
    for history in phase.register.submissions.values():
        known: dict[str, object] = {}
        for facts in history.events:
            for name in (*FIXED, *ONCE_KNOWN):
                value = facts[name]
                if (name in FIXED or value is not None) and known.setdefault(name, value) != value:
                    yield f"the {name} of submission {facts['submission']} changed on {facts['at'][:16]}; it never can"


def _scores(phase: RevealedPhase) -> Iterator[str]:
    """Find scores that do not belong to the submission of their entry."""
    register = phase.register
    for entry, history in register.scores.items():
        for score in history.events:
            facts = register.submissions.get(entry, History()).at(datetime.fromisoformat(score["at"]))
            who = f"a score of {score['at'][:16]} for submission {score['submission']}"
            if facts is None:
                yield f"{who} was registered before the submission"
                return
            differing = [name for name in BOUND if score[name] != facts[name]]
            differing += [
                name
                for name in ONCE_KNOWN
                if None not in (score[name], facts[name]) and score[name] != facts[name]
            ]
            if differing:
                yield f"{who} has another {differing[0]} than the register"


def _before_the_rules(phase: RevealedPhase) -> Iterator[str]:
    """Find scores from before there were rules."""
    begun = phase.register.decisions.moments
    for history in phase.register.scores.values():
        first = history.events[0]
        if not begun or datetime.fromisoformat(first["at"]) < begun[0]:
            yield f"submission {first['submission']} was scored on {first['at'][:16]}, before the rules of the board were registered"


def _shown(phase: RevealedPhase) -> Iterator[str]:
    """Find shown values that do not follow from their scores, or from the Ladder or the withholding of values at their time."""
    register = phase.register
    rounding = 0.5 * 10.0 ** -min(int(one["rules"]["decimals"]) for one in register.decisions.events) + 1e-9
    for entry, history in register.scores.items():
        for moment, score in zip(history.moments, history.events, strict=True):
            rules, withheld = register.rules(moment), register.withholds(moment)
            q_mean = mean_quality(list(phase.quality_of(score).values()))
            told = ShownValue(value=score["q_mean"], counts=score["counts"])
            if register.is_after_the_close(entry, moment):
                follows = told == AFTER_THE_CLOSE
            elif rules is None or (rules.ladder_step is None and not withheld):
                follows = score["q_mean"] is not None and abs(score["q_mean"] - q_mean) <= rounding
            elif not score["public_at_first"] and not withheld:
                continue  # the ladder of private submissions is not fully open
            else:
                expected = _expected(phase, entry, score, moment, q_mean)
                follows = expected is None or replace(expected, standing=None) == told
            if not follows:
                yield (
                    f"what was posted for submission {score['submission']} on {score['at'][:16]} does not follow from its scores"
                    " by the rules at that time"
                )


def _expected(
    phase: RevealedPhase, entry: str, score: events.Fields, moment: datetime, q_mean: float
) -> ShownValue | None:
    """Return the score that a submission should have been shown; None for one off the board, whose answer stayed as it was."""
    register = phase.register
    rules = register.rules(moment)
    if rules is None or register.withholds(moment):
        return ShownValue(value=None)
    epsilon = phase.protocol_of(score).recipe.epsilon
    basis = {
        "protocol": score["protocol"],
        "tasks": {task: cell["version"] for task, cell in score["cells"].items()},
    }
    team = int(score["team_key"]), bool(score["public_at_first"])
    rungs = register.rungs(basis, moment, epsilon=epsilon, entry=entry, team=team)
    climbed = ladders(rungs, rules).get(int(score["submission"]))
    if climbed is not None:
        return climbed
    facts = register.submissions[entry].at(moment)
    if facts is None or not (facts["own"] or facts["baseline"]):
        return None
    return ShownValue(value=shown(q_mean, rules.decimals, rules.ladder_step))


def _rows(phase: RevealedPhase) -> Iterator[str]:
    """Find cells whose rows are not those of the task; they decide which tasks are resampled together."""
    known: dict[tuple[str, str], str] = {}
    versions = {task["identifier"]: str(task["version"]) for task in phase.manifest["tasks"]}
    for name, content in phase.label_files.items():
        task = name.rpartition("__")[0]
        if task in versions:
            known[task, versions[task]] = ids_hash(tuple(identifier for identifier, _ in label_rows(content)))
    for history in phase.register.scores.values():
        for score in history.events:
            for task, cell in score["cells"].items():
                if known.setdefault((task, cell["version"]), cell["row_set"]) != cell["row_set"]:
                    yield f"submission {score['submission']} was scored on other rows than those of task {task}"


_LOOKS: tuple[Callable[[RevealedPhase], Iterator[str]], ...] = (
    _openings,
    _changes,
    _scores,
    _before_the_rules,
    _shown,
    _rows,
)


def unscored(phase: RevealedPhase) -> Verdict | None:
    """Report the submissions that would count in the end if they had scores on the final tasks; None if there are none."""
    register = phase.register
    rules = register.rules(register.end)
    if rules is None:
        return None
    found = [
        str(history.events[-1]["submission"])
        for entry, history in register.submissions.items()
        if membership.kept_off(history.events[-1], rules) is None
        and register.score(entry, register.end) is None
    ]
    if not found:
        return None
    return phase.believed(
        "unscored",
        (
            f"submission {', '.join(found)} has no score on the final tasks and is on no board; that it could not be"
            " scored is taken on trust"
        ),
    )
