"""Lies that organizers could tell, each with the check that contradicts it or the sentence that discloses it.

Each lie changes a story of the liar's kit, and the kit then makes everything else consistent with it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from leaderboard import Board
from scoring.quality import mean_quality, quality, shown
from scoring.scorecard import folds_from_json
from tests.acceptance.fair_challenge import REVEAL
from tests.acceptance.liar import EVERY, Story, Told
from worker.fairness import events

Tell = Callable[[Story], object]


def score(story: Story, team: str) -> Told:
    """Return the score of a team's last submission."""
    return [one for one in story.about(story.sent_by(team)[-1]) if one.fields["kind"] == events.SCORE][-1]


def _facts(story: Story, team: str) -> Told:
    """Return the newest facts about a team's last submission."""
    return [one for one in story.about(story.sent_by(team)[-1]) if one.fields["kind"] == events.SUBMISSION][
        -1
    ]


def raise_score(told: Told, by: float) -> None:
    """Raise all fold scores, and change the shown value accordingly."""
    for cell in told.fields["cells"].values():
        cell["folds"] = [min(1.0, fold + by) for fold in cell["folds"]]
    scores = [quality(folds_from_json(cell["folds"]), 0.02).q for cell in told.fields["cells"].values()]
    told.fields["q_mean"] = shown(mean_quality(scores), 3)


def _decide(story: Story, kind: str, earlier: Told, **changes: Any) -> Told:
    """Add an event of a kind ten minutes before the board was closed."""
    close = story.of(events.PHASE)[-1]
    return story.add({**earlier.fields, "kind": kind, **changes}, close.at - timedelta(minutes=10))


def _change_rules(story: Story, **rules: Any) -> None:
    """Change the rules ten minutes before the board was closed."""
    before, close = story.of(events.PHASE)[-2:]
    changed = {**before.fields["rules"], **rules}
    _decide(story, events.PHASE, before, rules=changed, reason="we like others")
    close.fields["rules"] = changed


def _hide_winner(story: Story) -> None:
    _change_rules(story, hidden_teams=["A"])


def _hide_winner_from_the_start(story: Story) -> None:
    """Let the registered rules fit the last board, but not the boards before it."""
    last = story.boards("dev")[-1]
    for told in story.of(events.PHASE):
        told.fields["rules"] = {**told.fields["rules"], "hidden_teams": ["A"]}
    story.on_boards = lambda made: [*made, last] if made and made[0].phase == "dev" else made


def take_off(**changes: Any) -> Tell:
    """Change the facts about the winner's submission at the end."""
    return lambda story: _decide(story, events.SUBMISSION, _facts(story, "A"), **changes)


def _set_folds(change: Callable[[list[Any]], list[Any]]) -> Tell:
    def tell(story: Story) -> None:
        cell = score(story, "C").fields["cells"]["alpha"]
        cell["folds"] = change(cell["folds"])

    return tell


def _one_fold(story: Story) -> None:
    for told in story.of(events.SCORE):
        for cell in told.fields["cells"].values():
            cell["folds"] = cell["folds"][:1]


def _set_score(**changes: Any) -> Tell:
    return lambda story: score(story, "C").fields.update(changes)


def _equal_content(story: Story) -> None:
    content = score(story, "A").fields["content"]
    for told in story.about(story.sent_by("C")[0]):
        told.fields["content"] = content


def _second_score(**changes: Any) -> Tell:
    def tell(story: Story) -> None:
        first = score(story, "A")
        again = _decide(story, events.SCORE, first, **changes)
        if not changes:
            again.fields["cells"]["alpha"]["folds"][0] -= 0.1

    return tell


def _swap_entries(story: Story) -> None:
    one, other = score(story, "B"), score(story, "C")
    one.fields["entry"], other.fields["entry"] = other.fields["entry"], one.fields["entry"]


def _swap_all_but_the_file(story: Story) -> None:
    one, other = score(story, "B").fields, score(story, "C").fields
    for name in ("entry", "submission", "team", "team_key"):
        one[name], other[name] = other[name], one[name]


def _swap_names(story: Story) -> None:
    other = {"B": "C", "C": "B"}
    for told in story.events:
        if told.fields.get("team") in other:
            told.fields["team"] = other[told.fields["team"]]


def _swap_names_at_the_end(story: Story) -> None:
    for team, other in (("A", "C"), ("C", "A")):
        for submission in story.sent_by(team):
            newest = [one for one in story.about(submission) if one.fields["kind"] == events.SUBMISSION][-1]
            _decide(story, events.SUBMISSION, newest, team=other)


def _other_fact(**changes: Any) -> Tell:
    return lambda story: _decide(story, events.SUBMISSION, _facts(story, "C"), **changes)


def _twice_registered(story: Story) -> None:
    for told in story.about(story.sent_by("C")[0]):
        again = story.add({**told.fields, "entry": "ab" * 16, "team": "Z", "team_key": 99}, told.at)
        again.nonce = "cd" * 31 + told.nonce[:2]


def _other_rows(story: Story) -> None:
    for told in story.of(events.SCORE):
        told.fields["cells"]["alpha"]["row_set"] = "ab" * 32


def _half_open(story: Story) -> None:
    _decide(story, events.SUBMISSION, _facts(story, "C"), flagged=True).whole = False


def _leave_out(team: str) -> Tell:
    def tell(story: Story) -> None:
        for told in story.events:
            told.left_out = told.left_out or told.fields.get("team") == team

    return tell


def _in_another_format(story: Story) -> None:
    _leave_out("C")(story)
    lines = {story.due(told.at) for told in story.events if told.left_out}

    def line(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "format": 2} if body["sequence"] in lines else body

    story.on_lines = line


def _restored(story: Story, *, later: int) -> None:
    _leave_out("C")(story)
    lines = [story.due(told.at) for told in story.events if told.left_out]
    said = {"kind": events.CHALLENGE, "phase": None, "what": "restored", "text": "A backup was restored."}
    none = dict.fromkeys(("commit", "team_key", "pseudonym"))
    note = {**said, **none, "first": min(lines), "last": max(lines)}
    story.add(note, story.log[max(lines) - 1 + later] + timedelta(minutes=5))
    lost = {"first": min(lines), "last": max(lines)}
    number = max(lines) + 1 + later
    story.on_lines = lambda body: {**body, "restored": lost} if body["sequence"] == number else body


def _without_register(story: Story) -> None:
    def files(before: dict[str, bytes]) -> dict[str, bytes]:
        document = json.loads(before[REVEAL])
        for part in document.pop("parts"):
            del before[f"reveal/dev/{part['name']}"]
        return {**before, REVEAL: json.dumps(document).encode()}

    story.on_files = files


def _all_in_the_last_line(story: Story) -> None:
    for told in story.events:
        told.line = len(story.log)


def _one_line(story: Story) -> None:
    story.log = story.log[-1:]


def _line_runs_back(story: Story) -> None:
    story.log[3] -= 3 * EVERY
    for told in story.events:
        told.line = told.line or (4 if told.at > story.log[2] and told.at <= story.log[4] else None)


def _before_its_line(story: Story) -> None:
    score(story, "C").line = 1


def _closed_too_early(story: Story) -> None:
    """Claim afterwards that the board was closed before the winner's submission, and publish no board that shows it."""
    sent = min(told.at for told in story.about(story.sent_by("A")[-1]))
    story.of(events.PHASE)[-1].fields["frozen_at"] = (sent - timedelta(minutes=1)).isoformat()
    story.on_boards = lambda made: [board for board in made if board.phase != "dev" or board.made_at < sent]


def _last_board_kept_back(story: Story) -> None:
    close = story.of(events.PHASE)[-1]
    story.drop([close])
    story.on_boards = lambda made: made[:-1] if made and made[0].phase == "dev" else made


def _on_early_board(change: Callable[[Board, Board], Board]) -> Tell:
    def tell(story: Story) -> None:
        def edit(made: list[Board]) -> list[Board]:
            if made and made[0].phase == "dev":
                made[-2] = change(made[-2], made[-1])
            return made

        story.on_boards = edit

    return tell


def _swapped_rows(board: Board, _: Board) -> Board:
    first, second, *rest = board.standings
    names = replace(first, team=second.team), replace(second, team=first.team)
    return replace(board, standings=(*names, *rest))


def _rules_afterwards(story: Story) -> None:
    first = story.of(events.PHASE)[0]
    first.fields["at"] = (score(story, "C").at + timedelta(minutes=1)).isoformat()
    story.events.sort(key=lambda one: one.at)


CAUGHT: dict[str, tuple[Tell, str]] = {
    "a fold score of 1.7": (_set_folds(lambda folds: [1.7, *folds[1:]]), "dev: possible"),
    "all folds failed": (_set_folds(lambda folds: [None for _ in folds]), "dev: possible"),
    "one fold instead of four": (_one_fold, "dev: possible"),
    "equal content with other folds": (_equal_content, "dev: possible"),
    "a second, lower score": (_second_score(), "dev: possible"),
    "a second value for the same scores": (_second_score(q_mean=1.0), "dev: facts"),
    "a value that was shown and never scored": (_set_score(q_mean=99.0), "dev: facts"),
    "scores under each other's entry": (_swap_entries, "dev: facts"),
    "scores of each other's file": (_swap_all_but_the_file, "dev: facts"),
    "a submission that was sent at another time": (
        _other_fact(submitted_at="2026-03-01T00:00:00+00:00"),
        "dev: facts",
    ),
    "a submission that changes its team": (_other_fact(team_key=99), "dev: facts"),
    "a submission that was never public": (_other_fact(public_at_first=False), "dev: facts"),
    "another file in its place": (_other_fact(file="ab" * 32), "dev: facts"),
    "one submission as two": (_twice_registered, "dev: facts"),
    "other rows of a task": (_other_rows, "dev: facts"),
    "an event of a public entry that stays closed": (_half_open, "dev: facts"),
    "a score whose submission is closed": (
        lambda story: setattr(_facts(story, "C"), "whole", False),
        "dev: facts",
    ),
    "a team left out of the reveal": (_leave_out("C"), "register"),
    "lines of another format, which nobody opens": (_in_another_format, "receipts"),
    "a restore of lines long ago": (lambda story: _restored(story, later=2), "dev: register"),
    "a reveal without its register": (_without_register, "dev: reveal"),
    "all in the last line": (_all_in_the_last_line, "dev: register"),
    "an event in a line before it": (_before_its_line, "dev: register"),
    "lines whose times run back": (_line_runs_back, "receipts"),
    "names swapped on an early board": (_on_early_board(_swapped_rows), "dev: boards"),
    "a team out of competition on an early board": (
        _on_early_board(
            lambda one, _: replace(
                one, standings=(replace(one.standings[0], eligible=False), *one.standings[1:])
            )
        ),
        "dev: boards",
    ),
    "rules that fit the last board only": (_hide_winner_from_the_start, "dev: boards"),
    "rules that were made after the scores": (_rules_afterwards, "dev: facts"),
    "boards whose times run back": (
        _on_early_board(lambda one, last: replace(one, made_at=last.made_at + timedelta(minutes=1))),
        "dev: boards",
    ),
    "boards that are numbered otherwise": (
        _on_early_board(lambda one, _: replace(one, sequence=77)),
        "dev: boards",
    ),
}


def _other_versions(story: Story) -> None:
    """Name a version of a task that is not the hash of its labels, wherever it is named."""
    other: dict[str, str] = {}

    def change(manifest: dict[str, Any]) -> None:
        task = manifest["tasks"][0]
        task["version"] = other.setdefault(task["version"], "ab" * 32)

    story.recommit(change)
    for told in story.of(events.PHASE):
        told.fields["tasks"] = {name: other.get(one, one) for name, one in told.fields["tasks"].items()}
    for told in story.of(events.SCORE):
        for cell in told.fields["cells"].values():
            cell["version"] = other.get(cell["version"], cell["version"])


def _epochs_in_a_last_commitment(story: Story) -> None:
    entry = copy.deepcopy(story.entries[-1])
    after = max(told.at for told in story.of(events.SCORE)) + timedelta(minutes=1)
    entry |= {"sequence": len(story.entries) + 1, "made_at": after.isoformat(timespec="seconds")}
    story.entries.append(entry)
    for reveal in story.reveals.values():
        opened = copy.deepcopy(reveal["commitments"][-1])
        reveal["commitments"].append({**opened, "sequence": entry["sequence"]})
    story.recommit(
        lambda manifest: manifest["protocol"]["recipe"].update(epochs=30), first=len(story.entries) - 1
    )


def _entry(change: Callable[[dict[str, Any]], object]) -> Tell:
    def tell(story: Story) -> None:
        change(story.entries[0])
        story.sign_entries()

    return tell


def _line(**keys: Any) -> Tell:
    return lambda story: setattr(story, "on_lines", lambda body: {**body, **keys})


def _key_twice(story: Story) -> None:
    def files(before: dict[str, bytes]) -> dict[str, bytes]:
        listed = before["commitment.json"].replace(b'"reason"', b'"reason": "none", "reason"', 1)
        return {**before, "commitment.json": listed}

    story.on_files = files


def _reveal_with(**keys: Any) -> Tell:
    return lambda story: story.reveals["dev"].update(keys)


MALFORMED: dict[str, tuple[Tell, str, str]] = {
    "versions that the labels do not have": (
        _other_versions,
        "dev: labels",
        "The version of task alpha in commitment 1 is not the hash of its labels",
    ),
    "other epochs in a last commitment": (
        _epochs_in_a_last_commitment,
        "dev: fixed",
        "the protocol of commitment 2 were never registered as a decision",
    ),
    "no rule for published files": (
        _entry(lambda entry: entry.pop("publish_files")),
        "commitment",
        "commitment.json, entry 1: publish_files: is missing",
    ),
    "a protocol without epochs": (
        _entry(lambda entry: entry["phases"]["dev"]["recipe"].pop("epochs")),
        "commitment",
        "commitment.json, entry 1: phases.dev.recipe.epochs: is missing",
    ),
    "a commitment from the future": (
        _entry(lambda entry: entry.update(made_at="2999-01-01T00:00:00+00:00")),
        "commitment",
        "dated in the future",
    ),
    "a key twice": (_key_twice, "commitment", "a key occurs twice"),
    "a line with its own cadence": (_line(every=315360000), "receipts", "line 1: every: is unknown"),
    "a line with too few entries": (_line(entries=[]), "receipts", "receipts.jsonl, line 1: entries: "),
    "another key in a reveal": (_reveal_with(rules={}), "dev: reveal", "reveal.json: rules: is unknown"),
    "a reveal of another phase": (_reveal_with(phase="eval"), "dev: reveal", "phase: is eval"),
}


def _text_around(files: dict[str, bytes]) -> dict[str, bytes]:
    return {
        **files,
        "README.md": b"# Tiny\n\nThe winner is B.\n\n" + files["README.md"].partition(b"\n\n")[2],
    }


NAMED: dict[str, tuple[Tell, str, str | None]] = {
    "the winner is hidden": (
        _hide_winner,
        'hidden_teams: [] to ["A"]',
        "(we like others), which changed these ranks: A 2 → none",
    ),
    "the winner is disqualified": (
        take_off(removed="too late"),
        "of A was disqualified on 2026-03-0",
        "it was disqualified (too late)",
    ),
    "the winner is flagged": (
        take_off(flagged=True),
        ": it was flagged at EvalAI",
        None,
    ),
    "the winner's answer is taken back": (
        take_off(answered=False),
        ": its answer was taken back",
        "its answer was taken back, registered on",
    ),
    "the winner becomes a trial": (
        take_off(own=True),
        ": it is taken for a trial",
        "it is taken for a trial of the organizers, registered on",
    ),
    "the winner becomes a baseline": (
        take_off(baseline=True),
        "of A was marked as a baseline on",
        None,
    ),
    "the friend takes the winner's name": (
        _swap_names_at_the_end,
        "team A is now called C on",
        None,
    ),
    "another selection at the end": (
        lambda story: _change_rules(story, selection="best"),
        'the rules changed (selection: "last" to "best")',
        None,
    ),
    "others are eligible at the end": (
        lambda story: _change_rules(story, eligible_if_scored_in="eval"),
        'eligible_if_scored_in: null to "eval"',
        None,
    ),
    "closed before the winner sent": (
        _closed_too_early,
        "of A was answered after the board was closed",
        "nothing published says why",
    ),
    "the last board is kept back": (_last_board_kept_back, "was not published before the reveal", None),
    "a friend's scores are raised": (
        lambda story: raise_score(score(story, "C"), 0.05),
        "submissions were not recomputed from their files: they are taken on trust.",
        None,
    ),
    "names of two teams swapped": (_swap_names, "who sent each submission", None),
    "a public entry as a private one": (
        lambda story: [setattr(one, "whole", False) for one in story.about(story.sent_by("A")[-1])],
        "opened only in part (private",
        "was revealed as private",
    ),
    "an entry that was never registered": (
        lambda story: story.drop(story.about(story.sent_by("A")[-1])),
        "whether one is missing from the register",
        "The public log was changed after you were answered.",
    ),
    "a score that was never registered": (
        lambda story: story.drop([score(story, "A")]),
        "has no score on the final tasks",
        "Every phase has been revealed, but your score is in none of them.",
    ),
    "entries lost with a backup": (
        lambda story: _restored(story, later=0),
        "the keys were lost when the state was restored",
        None,
    ),
    "one line for a whole day": (_one_line, "hours later than announced", None),
    "half a reveal": (
        lambda story: setattr(story, "revealed", ("dev",)),
        "Not revealed: tasks, splits, scores and ranks cannot be checked.",
        None,
    ),
    "the other half": (
        lambda story: setattr(story, "revealed", ("eval",)),
        "its rules ask for a score in phase dev, which has not been revealed",
        None,
    ),
    "another close on the page": (
        lambda story: setattr(story, "closed_told", story.log[1]),
        "Closed, according to the page: 2026-03-02T11:00; according to the register until the reveal: 2026-03-0",
        None,
    ),
    "words around the board": (
        lambda story: setattr(story, "on_files", _text_around),
        "The winner is B.”",
        None,
    ),
    "chosen splits": (lambda _: None, "the organizers could have tried many and chosen some", None),
    "earlier boards": (
        lambda _: None,
        "tie groups and intervals of all boards but the last are taken on trust",
        None,
    ),
}
