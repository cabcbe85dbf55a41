"""The table of lies: what organizers who have all keys could tell, and where each lie must be found.

A lie changes a story of the liar's kit, and the kit then makes everything else consistent with it. Lies that change one field, one line
or one file are not here: ``test_fairness_mutations.py`` changes them all.
"""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pandas as pd

from leaderboard import Board
from leaderboard.snapshot import RowStability
from scoring.evaluate import tested
from scoring.inputs.tables import LabelRow
from scoring.metrics import mean_quality, quality, shown
from scoring.randomness import test_parts
from scoring.scorecard import folds_from_json
from scoring.tasks import Task, TaskType, make_task
from tests.acceptance.fair_challenge import BASELINE, REVEAL
from tests.acceptance.liar import EVERY, Story, Told
from tests.worker.harness.harness import IDS
from worker.fairness import events, manifests

Tell = Callable[[Story], object]
STEP = 5.0  # of the ladder; so large that the second submission of a team never beats the first


@dataclass(frozen=True)
class Lie:
    """A lie about an honest challenge.

    Attributes:
        tell: Changes the story.
        check: The check that contradicts the lie; empty if nothing in the repository can.
        words: Part of the sentence that contradicts the lie or discloses it.
        receipt: Part of the sentence with which the winner's receipt contradicts it; empty if it does not.
    """

    tell: Tell
    check: str = ""
    words: str = ""
    receipt: str = ""


def score(story: Story, team: str) -> Told:
    """Return the score of a team's last submission."""
    return [event for event in story.about(story.sent_by(team)[-1]) if event.fields["kind"] == events.SCORE][
        -1
    ]


def _facts(story: Story, team: str) -> Told:
    """Return the newest facts about a team's last submission."""
    return [
        event for event in story.about(story.sent_by(team)[-1]) if event.fields["kind"] == events.SUBMISSION
    ][-1]


def raise_score(event: Told, by: float) -> None:
    """Raise all fold scores, and change the shown value accordingly."""
    for cell in event.fields["cells"].values():
        cell["folds"] = [min(1.0, fold + by) for fold in cell["folds"]]
    scores = [quality(folds_from_json(cell["folds"]), 0.02).q for cell in event.fields["cells"].values()]
    event.fields["q_mean"] = shown(mean_quality(scores), 3)


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


def _best_from_the_start(story: Story) -> None:
    """Let the registered rules fit the last board, but not the boards before it."""
    last = story.boards("dev")[-1]
    for event in story.of(events.PHASE):
        event.fields["rules"] = {**event.fields["rules"], "selection": "best"}
    story.on_boards = lambda made: [*made, last] if made and made[0].phase == "dev" else made


def _from_the_start(story: Story, **rules: Any) -> None:
    """Let other rules of phase dev hold from the start."""
    for event in story.of(events.PHASE):
        if event.fields["phase"] == "dev":
            event.fields["rules"] = {**event.fields["rules"], **rules}


def _facts_of_the_winner(story: Story, *, only_first: bool = False, **facts: Any) -> None:
    """Change what was seen first of the winner's last submission, in all events or in the first one."""
    about = [
        event for event in story.about(story.sent_by("A")[-1]) if event.fields["kind"] == events.SUBMISSION
    ]
    for event in about[:1] if only_first else about:
        event.fields.update(facts)


def _late_baseline(story: Story) -> None:
    """Let the baseline come shortly before the close."""
    close = story.of(events.PHASE)[-1]
    [baseline] = {event.fields["submission"] for event in story.of(events.SUBMISSION) if event.fields["own"]}
    about = story.about(baseline)
    story.drop(about)
    for number, event in enumerate(about):
        story.add(event.fields, close.at - timedelta(minutes=20 - number))


def take_off(**changes: Any) -> Tell:
    """Change the facts about the winner's submission at the end."""
    return lambda story: _decide(story, events.SUBMISSION, _facts(story, "A"), **changes)


def disqualify(team: str, **told: Any) -> Tell:
    """Disqualify a team ten minutes before the board of phase dev was closed."""

    def tell(story: Story) -> None:
        close, number = story.of(events.PHASE)[-1], _facts(story, team).fields["team_key"]
        decision = {"kind": events.TEAM, "phase": None, "team_key": number, "disqualified": True}
        story.add({**decision, "reason": "too late"}, close.at - timedelta(minutes=10), **told)

    return tell


def _shown_nevertheless(story: Story) -> None:
    made_before = story.boards("dev")
    disqualify("A")(story)
    story.on_boards = lambda made: made_before if made and made[0].phase == "dev" else made


def _named_otherwise(story: Story) -> None:
    disqualify("A")(story)

    def files(before: dict[str, bytes]) -> dict[str, bytes]:
        words = b"eam A was disqualified", b"eam C was disqualified"
        return {path: content.replace(*words) for path, content in before.items()}

    story.on_files = files


def _set_folds(change: Callable[[list[Any]], list[Any]]) -> Tell:
    def tell(story: Story) -> None:
        cell = score(story, "C").fields["cells"]["alpha"]
        cell["folds"] = change(cell["folds"])

    return tell


def _one_fold(story: Story) -> None:
    for event in story.of(events.SCORE):
        for cell in event.fields["cells"].values():
            cell["folds"], cell["test_parts"] = cell["folds"][:1], []


def _equal_content(story: Story) -> None:
    content = score(story, "A").fields["content"]
    for event in story.about(story.sent_by("C")[0]):
        event.fields["content"] = content


def _second_score(**changes: Any) -> Tell:
    def tell(story: Story) -> None:
        first = score(story, "A")
        again = _decide(story, events.SCORE, first, **changes)
        if not changes:
            again.fields["cells"]["alpha"]["folds"][0] -= 0.1

    return tell


def _swap_entries(story: Story) -> None:
    first, second = score(story, "B"), score(story, "C")
    first.fields["entry"], second.fields["entry"] = second.fields["entry"], first.fields["entry"]


def _swap_all_but_the_file(story: Story) -> None:
    first, second = score(story, "B").fields, score(story, "C").fields
    for name in ("entry", "submission", "team", "team_key"):
        first[name], second[name] = second[name], first[name]


def _swap_names(story: Story) -> None:
    other = {"B": "C", "C": "B"}
    for event in story.events:
        if event.fields.get("team") in other:
            event.fields["team"] = other[event.fields["team"]]


def _swap_names_at_the_end(story: Story) -> None:
    for team, other in (("A", "C"), ("C", "A")):
        for submission in story.sent_by(team):
            newest = [
                event for event in story.about(submission) if event.fields["kind"] == events.SUBMISSION
            ][-1]
            _decide(story, events.SUBMISSION, newest, team=other)


def _other_fact(**changes: Any) -> Tell:
    return lambda story: _decide(story, events.SUBMISSION, _facts(story, "C"), **changes)


def _twice_registered(story: Story) -> None:
    for event in story.about(story.sent_by("C")[0]):
        again = story.add({**event.fields, "entry": "ab" * 16, "team": "Z", "team_key": 99}, event.at)
        again.nonce = "cd" * 31 + event.nonce[:2]


def _other_rows(story: Story) -> None:
    for event in story.of(events.SCORE):
        event.fields["cells"]["alpha"]["row_set"] = "ab" * 32


def _different_parts(story: Story) -> None:
    for event in story.of(events.SCORE):
        for cell in event.fields["cells"].values():
            cell["test_parts"] = []


def _half_open(story: Story) -> None:
    _decide(story, events.SUBMISSION, _facts(story, "C"), method="another").whole = False


def _leave_out(team: str) -> Tell:
    def tell(story: Story) -> None:
        for event in story.events:
            event.left_out = event.left_out or event.fields.get("team") == team

    return tell


def _in_another_format(story: Story) -> None:
    _leave_out("C")(story)
    lines = {story.due(event.at) for event in story.events if event.left_out}

    def line(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "format": 2} if body["sequence"] in lines else body

    story.on_lines = line


def _restored(story: Story, *, later: int) -> None:
    _leave_out("C")(story)
    lines = [story.due(event.at) for event in story.events if event.left_out]
    fields = {"kind": events.CHALLENGE, "phase": None, "what": "restored", "text": "A backup was restored."}
    story.add(
        fields,
        story.log[max(lines) - 1 + later] + timedelta(minutes=5),
    )
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
    for event in story.events:
        event.line = len(story.log)


def _one_line(story: Story) -> None:
    story.log = story.log[-1:]


def _line_runs_back(story: Story) -> None:
    story.log[3] -= 3 * EVERY
    for event in story.events:
        event.line = event.line or (4 if event.at > story.log[2] and event.at <= story.log[4] else None)


def _before_its_line(story: Story) -> None:
    score(story, "C").line = 1


def _closed_too_early(story: Story) -> None:
    """Claim afterwards that the board was closed before the winner's submission, and publish no board that shows it."""
    sent = min(event.at for event in story.about(story.sent_by("A")[-1]))
    story.of(events.PHASE)[-1].fields["closed_at"] = (sent - timedelta(minutes=1)).isoformat()
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


def _on_stability(change: Callable[[RowStability], RowStability | None]) -> Tell:
    """Change what the last board of phase dev says about other tasks, in its JSON and on the page."""

    def edit(made: list[Board]) -> list[Board]:
        figures = made[-1].figures if made and made[-1].phase == "dev" else None
        if figures is None:
            return made
        rows = tuple(replace(row, stability=row.stability and change(row.stability)) for row in figures.rows)
        return [*made[:-1], replace(made[-1], figures=replace(figures, rows=rows))]

    return lambda story: setattr(story, "on_boards", edit)


def _swapped_rows(board: Board, _: Board) -> Board:
    first, second, *rest = board.standings
    names = replace(first, team=second.team), replace(second, team=first.team)
    return replace(board, standings=(*names, *rest))


def _rules_afterwards(story: Story) -> None:
    first = story.of(events.PHASE)[0]
    first.fields["at"] = (score(story, "C").at + timedelta(minutes=1)).isoformat()
    story.events.sort(key=lambda event: event.at)


def _regrouped(group: Callable[[int, str], str]) -> Callable[[Story], dict[str, list[LabelRow]]]:
    """Return a lie that gives the samples of phase dev other groups, also in the published label files, and returns the rows of each."""

    def change(story: Story) -> dict[str, list[LabelRow]]:
        tables = {}
        for path, content in story.hidden["dev"].items():
            if "/labels/" in path:
                table = pd.read_csv(io.BytesIO(content), dtype={"id": str, "label": str})
                table["group"] = [group(row, name) for row, name in enumerate(table["group"])]
                if not table["group"].all():
                    table = table.drop(columns="group")
                story.hidden["dev"][path] = table.to_csv(index=False, lineterminator="\n").encode()
                tables[path.rpartition("/")[2]] = [
                    LabelRow(line, name, float(label), *rest)
                    for line, (name, label, *rest) in enumerate(table.itertuples(index=False), 2)
                ]
        return tables

    return change


def regroup_from_the_start(story: Story) -> None:
    """Give samples other groups, and commit to these, as if the scores had been made with them."""
    versions: dict[str, str] = {}
    tasks: dict[str, Task] = {}
    tables = _regrouped(lambda row, _: f"tile {row % 12}")(story)
    manifests_of_dev = story.reveals["dev"]["manifests"].values()
    grouped = {task["version"] for manifest in manifests_of_dev for task in manifest["tasks"]}

    def change(manifest: dict[str, Any], _: dict[str, Any]) -> None:
        for task in manifest["tasks"]:
            if task["version"] in grouped:
                rows = tables[f"{task['identifier']}__{task['type']}.csv"]
                made = make_task(
                    task["identifier"], TaskType(task["type"]), rows, frozenset(IDS), source="a lie"
                )
                versions[task["version"]], tasks[made.version] = made.version, made
                task["version"], task["labels"] = (
                    made.version,
                    manifests.labels_hash(rows, bytes.fromhex(task["salt"])),
                )

    story.recommit(change)
    _rename_versions(story, versions)
    protocol, key = story.records["dev"].protocol, bytes.fromhex(story.reveals["dev"]["key"])
    for event in story.of(events.SCORE):
        for cell in event.fields["cells"].values():
            made = tasks[cell["version"]]
            tests = tested(made.row_set, made.groups, protocol, key)
            cell |= {"row_set": made.row_set, "test_parts": list(test_parts(tests))}


def _rename_versions(story: Story, others: dict[str, str]) -> None:
    """Give tasks other versions in what is registered."""
    for event in story.of(events.PHASE):
        event.fields["tasks"] = {
            name: others.get(version, version) for name, version in event.fields["tasks"].items()
        }
    for event in story.of(events.SCORE):
        for cell in event.fields["cells"].values():
            cell["version"] = others.get(cell["version"], cell["version"])


def _other_versions(story: Story) -> None:
    """Name a version of a task that is not the hash of its labels, wherever it is named."""
    other: dict[str, str] = {}

    def change(manifest: dict[str, Any], _: dict[str, Any]) -> None:
        task = manifest["tasks"][0]
        task["version"] = other.setdefault(task["version"], "ab" * 32)

    story.recommit(change)
    _rename_versions(story, other)


def _epochs_in_a_last_commitment(story: Story) -> None:
    entry = copy.deepcopy(story.entries[-1])
    after = max(event.at for event in story.of(events.SCORE)) + timedelta(minutes=1)
    entry |= {"sequence": len(story.entries) + 1, "made_at": after.isoformat(timespec="seconds")}
    story.entries.append(entry)
    for reveal in story.reveals.values():
        (*_, manifest) = reveal["manifests"].values()
        reveal["manifests"][str(entry["sequence"])] = copy.deepcopy(manifest)
    story.recommit(lambda _, announced: announced["recipe"].update(epochs=30), first=len(story.entries) - 1)


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


def _text_around(files: dict[str, bytes]) -> dict[str, bytes]:
    return {
        **files,
        "README.md": b"# Tiny\n\nThe winner is B.\n\n" + files["README.md"].partition(b"\n\n")[2],
    }


def with_ladder(story: Story) -> Story:
    """Change a story as if phase dev had used a ladder from the beginning."""
    for event in story.of(events.PHASE):
        event.fields["rules"] = {**event.fields["rules"], "selection": "ladder", "ladder_step": STEP}
    for event in story.of(events.SCORE):
        scored = events.parse(event.fields)
        if event.whole and isinstance(scored, events.ScoreEvent):
            answer = story.replay(event.at)["dev"].shown_value(scored, event.at)
            event.fields |= {"q_mean": answer.value, "counts": answer.counts}
    return story


def _on_the_ladder(number: int, **changes: Any) -> Tell:
    """Change what the winner was told about one of its submissions."""

    def tell(story: Story) -> None:
        submission = story.sent_by("A")[number]
        (event,) = (
            event for event in with_ladder(story).about(submission) if event.fields["kind"] == events.SCORE
        )
        event.fields |= changes

    return tell


def _own_value(story: Story) -> None:
    event = score(story, "A")
    own = event.fields["q_mean"]
    with_ladder(story)
    event.fields["q_mean"] = own


def _boards_without_ladder(story: Story) -> None:
    with_ladder(story)
    without = copy.deepcopy(story)
    for event in without.of(events.PHASE):
        event.fields["rules"] = {**event.fields["rules"], "selection": "last", "ladder_step": None}
    story.on_boards = lambda made: without.boards("dev") if made and made[0].phase == "dev" else made


LIES: dict[str, Lie] = {
    # contradicted by the repository alone
    "all folds failed": Lie(_set_folds(lambda folds: [None for _ in folds]), "dev: possible"),
    "one fold instead of four": Lie(_one_fold, "dev: possible"),
    "equal content with other folds": Lie(_equal_content, "dev: possible"),
    "a second, lower score": Lie(_second_score(), "dev: possible"),
    "a second value for the same scores": Lie(_second_score(q_mean=1.0), "dev: facts"),
    "scores under each other's entry": Lie(_swap_entries, "dev: facts"),
    "scores of each other's file": Lie(_swap_all_but_the_file, "dev: facts"),
    "a submission that was sent at another time": Lie(
        _other_fact(submitted_at="2023-09-14T00:00:00+00:00"), "dev: facts"
    ),
    "a submission that changes its team": Lie(_other_fact(team_key=99), "dev: facts"),
    "a submission that was never public": Lie(_other_fact(public_at_first=False, public=False), "dev: facts"),
    "another file in its place": Lie(_other_fact(file="ab" * 32), "dev: facts"),
    "one submission as two": Lie(_twice_registered, "dev: facts"),
    "other rows of a task": Lie(_other_rows, "dev: facts"),
    "equal folds as if they differed": Lie(_different_parts, "dev: facts"),
    "an event of a public entry that stays closed": Lie(_half_open, "dev: facts"),
    "a score whose submission is closed": Lie(
        lambda story: setattr(_facts(story, "C"), "whole", False), "dev: facts"
    ),
    "a score from before the commitment": Lie(
        lambda story: score(story, "C").fields.update(at="2001-01-01T00:00:00+00:00"), "dev: scores"
    ),
    "a task that nobody committed to": Lie(
        lambda story: (
            score(story, "C")
            .fields["cells"]
            .update(zeta={"version": "00" * 32, "row_set": "00" * 32, "test_parts": [], "folds": [0.5]})
        ),
        "dev: scores",
    ),
    "a team left out of the reveal": Lie(_leave_out("C"), "register"),
    "a disqualified team on the board": Lie(
        _shown_nevertheless, "dev: boards", "the last board is not the one that follows from the register"
    ),
    "a disqualification that is dropped": Lie(disqualify("C", left_out=True), "register"),
    "a disqualification in another phase only": Lie(
        disqualify("A", only_in="eval"), "register", "was revealed with phase eval, but not with phase dev"
    ),
    "another team named as disqualified": Lie(_named_otherwise, "page"),
    "lines of another format, which nobody opens": Lie(_in_another_format, "receipts"),
    "a restore of lines long ago": Lie(lambda story: _restored(story, later=2), "receipts"),
    "a reveal without its register": Lie(_without_register, "dev: reveal"),
    "all in the last line": Lie(_all_in_the_last_line, "dev: register"),
    "an event in a line before it": Lie(_before_its_line, "dev: register"),
    "lines whose times run back": Lie(_line_runs_back, "receipts"),
    "a friend who is first without any task": Lie(
        _on_stability(lambda row: replace(row, without=dict.fromkeys(row.without, 1))), "dev: page"
    ),
    "a winner whom other tasks would replace": Lie(
        _on_stability(lambda row: replace(row, p_first=0.5)), "dev: page", "leaderboard/dev.json"
    ),
    "nothing about other tasks": Lie(_on_stability(lambda _: None), "dev: page"),
    "names swapped on an early board": Lie(_on_early_board(_swapped_rows), "dev: boards"),
    "a team out of competition on an early board": Lie(
        _on_early_board(
            lambda board, _: replace(
                board, standings=(replace(board.standings[0], eligible=False), *board.standings[1:])
            )
        ),
        "dev: boards",
    ),
    "rules that fit the last board only": Lie(_best_from_the_start, "dev: boards"),
    "rules that were made after the scores": Lie(_rules_afterwards, "dev: facts"),
    "boards whose times run back": Lie(
        _on_early_board(lambda board, last: replace(board, made_at=last.made_at + timedelta(minutes=1))),
        "dev: boards",
    ),
    "boards that are numbered otherwise": Lie(
        _on_early_board(lambda board, _: replace(board, sequence=77)), "dev: boards"
    ),
    "its own value, where the ladder's was due": Lie(_own_value, "dev: facts"),
    "a submission that counts and climbed nothing": Lie(_on_the_ladder(-1, counts=True), "dev: facts"),
    "a submission that climbed and was told that it does not count": Lie(
        _on_the_ladder(0, counts=False), "dev: facts"
    ),
    "an answer that says nothing of the ladder": Lie(_on_the_ladder(0, counts=None), "dev: facts"),
    "boards on which the last submission counts all the same": Lie(_boards_without_ladder, "dev: boards"),
    # contradicted, with the place in a document
    "another grouping in the reveal": Lie(
        _regrouped(lambda row, _: f"tile {row // 5}"),
        "dev: labels",
        "The labels of task alpha are not the ones committed to",
    ),
    "a reveal without groups": Lie(
        _regrouped(lambda *_: ""), "dev: labels", "The labels of task alpha are not the ones committed to"
    ),
    "versions that the labels do not have": Lie(
        _other_versions,
        "dev: labels",
        "The version of task alpha in commitment 1 is not the hash of its labels",
    ),
    "other epochs in a last commitment": Lie(
        _epochs_in_a_last_commitment,
        "dev: fixed",
        "the protocol of commitment 2 were never registered as a decision",
    ),
    "no rule for published files": Lie(
        _entry(lambda entry: entry.pop("publish_files")),
        "commitment",
        "commitment.json, entry 1: publish_files: is missing",
    ),
    "a protocol without epochs": Lie(
        _entry(lambda entry: entry["phases"]["dev"]["recipe"].pop("epochs")),
        "commitment",
        "commitment.json, entry 1: phases.dev.recipe.epochs: is missing",
    ),
    "a commitment from the future": Lie(
        _entry(lambda entry: entry.update(made_at="2999-01-01T00:00:00+00:00")),
        "commitment",
        "dated in the future",
    ),
    "a key twice": Lie(_key_twice, "commitment", "a key occurs twice"),
    "a line with its own cadence": Lie(_line(every=315360000), "receipts", "line 1: every: is unknown"),
    "a line with too few entries": Lie(_line(entries=[]), "receipts", "receipts.jsonl, line 1: entries: "),
    "another key in a reveal": Lie(_reveal_with(rules={}), "dev: reveal", "reveal.json: rules: is unknown"),
    "a reveal of another phase": Lie(_reveal_with(phase="eval"), "dev: reveal", "phase: is eval"),
    "an entry from before the first commitment": Lie(
        lambda story: _facts_of_the_winner(story, at="2001-01-01T00:00:00+00:00", only_first=True),
        "dev: received",
        "before the first commitment",
    ),
    "an entry that was sent after its score": Lie(
        lambda story: _facts_of_the_winner(story, submitted_at="2031-01-01T00:00:00+00:00"),
        "dev: received",
        "is said to have been sent on 2031",
    ),
    "a rule that asks for a phase without a commitment": Lie(
        lambda story: _from_the_start(story, eligible_if_scored_in="final"),
        "dev: boards",
        "ask for a score in phase final, to which there is no commitment",
    ),
    # disclosed, because the repository cannot contradict them
    "an entry that was scored and never answered": Lie(
        lambda story: story.drop(
            event for event in story.about(story.sent_by("A")[-1]) if event.fields.get("answered")
        ),
        words="(scored, not answered; registered on",
    ),
    "an entry that was received and never scored": Lie(
        lambda story: story.drop(story.about(story.sent_by("A")[-1])[1:]),
        words="(received, not scored; registered on",
    ),
    "an entry that was sent long before": Lie(
        lambda story: _facts_of_the_winner(story, submitted_at="2021-01-01T00:00:00+00:00"),
        words="were sent earlier than a submission with a lower number",
    ),
    "unusual rules from the start": Lie(
        lambda story: _from_the_start(story, replicates=177), words='rules at the start: selection: "last"'
    ),
    "a baseline that comes last": Lie(
        _late_baseline, words="came as a baseline, after the first ranked entry on"
    ),
    "the winner is disqualified": Lie(
        take_off(removed="too late"),
        words="of A was disqualified on 2023-09-1",
        receipt="the organizers disqualified it on 2023-09-1",
    ),
    "the winner's team is disqualified": Lie(
        disqualify("A"),
        words="team A was disqualified with all its submissions on 2023-09-1",
        receipt="the organizers disqualified its team with all its submissions on 2023-09-1",
    ),
    "the winner's answer is taken back": Lie(
        take_off(answered=False),
        words=": its answer was taken back",
        receipt="its answer was taken back",
    ),
    "the winner becomes a trial": Lie(
        take_off(own=True),
        words=": it is taken for a trial",
        receipt="it is taken for a trial of the organizers",
    ),
    "the winner becomes a baseline": Lie(
        take_off(own=True, method=BASELINE), words="of A became a baseline on"
    ),
    "the friend takes the winner's name": Lie(_swap_names_at_the_end, words="team A is now called C on"),
    "another selection at the end": Lie(
        lambda story: _change_rules(story, selection="best"),
        words='the rules changed (selection: "last" to "best")',
    ),
    "others are eligible at the end": Lie(
        lambda story: _change_rules(story, eligible_if_scored_in="eval"),
        words='eligible_if_scored_in: null to "eval"',
    ),
    "closed before the winner sent": Lie(
        _closed_too_early,
        words="of A was answered after the board was closed",
        receipt="nothing published says why",
    ),
    "the last board is kept back": Lie(_last_board_kept_back, "dev: boards"),
    "a friend's scores are raised": Lie(
        lambda story: raise_score(score(story, "C"), 0.05),
        words="submissions were not recomputed from their files: they are taken on trust.",
    ),
    "names of two teams swapped": Lie(_swap_names, words="who sent each submission"),
    "a public entry as a private one": Lie(
        lambda story: [setattr(event, "whole", False) for event in story.about(story.sent_by("A")[-1])],
        words="opened only in part (private",
        receipt="was revealed as private",
    ),
    "an entry that was never registered": Lie(
        lambda story: story.drop(story.about(story.sent_by("A")[-1])),
        words="whether one is missing from the register",
        receipt="The public log was changed after you were answered.",
    ),
    "a score that was never registered": Lie(
        lambda story: story.drop([score(story, "A")]),
        words="(it has no score on the present tasks; registered on",
        receipt="Every phase has been revealed, but your score is in none of them.",
    ),
    "entries lost with a backup": Lie(
        lambda story: _restored(story, later=0), words="the keys were lost when the state was restored"
    ),
    "one line for a whole day": Lie(_one_line, words="hours later than announced"),
    "half a reveal": Lie(
        lambda story: setattr(story, "revealed", ("dev",)),
        words="Not revealed: tasks, splits, scores and ranks cannot be checked.",
    ),
    "the other half": Lie(
        lambda story: setattr(story, "revealed", ("eval",)),
        words="its rules ask for a score in phase dev, which has not been revealed",
    ),
    "another close on the page": Lie(lambda story: setattr(story, "closed_told", story.log[1]), "dev: page"),
    "words around the board": Lie(
        lambda story: setattr(story, "on_files", _text_around), words="The winner is B.”"
    ),
    "chosen splits": Lie(lambda _: None, words="the organizers could have tried many and chosen some"),
    "earlier boards": Lie(lambda _: None, words="tie groups and intervals of all boards but the last"),
}
