"""Lies about decisions and rules, and about the boards that follow from them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from leaderboard import Board
from leaderboard.snapshot import RowStability
from tests.acceptance.fair_challenge import BASELINE, REVEAL
from tests.acceptance.liar import Story
from tests.acceptance.lie import Lie, Tell, decide, facts, score
from tests.acceptance.lies_about_entries import with_ladder
from worker.fairness import events


def _change_rules(story: Story, **rules: Any) -> None:
    """Change the rules ten minutes before the board was closed."""
    before, close = story.of(events.PHASE)[-2:]
    changed = {**before.fields["rules"], **rules}
    decide(story, events.PHASE, before, rules=changed, reason="we like others")
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
    return lambda story: decide(story, events.SUBMISSION, facts(story, "A"), **changes)


def disqualify(team: str, **told: Any) -> Tell:
    """Disqualify a team ten minutes before the board of phase dev was closed."""

    def tell(story: Story) -> None:
        close, number = story.of(events.PHASE)[-1], facts(story, team).fields["team_key"]
        decision = {"kind": events.TEAM, "phase": None, "team_key": number, "disqualified": True}
        story.add({**decision, "reason": "too late"}, close.at - timedelta(minutes=10), **told)

    return tell


def _shown_nevertheless(story: Story) -> None:
    made_before = story.boards("dev")
    disqualify("A")(story)
    story.on_boards = lambda made: made_before if made and made[0].phase == "dev" else made


def _disqualified_after_one_reveal(story: Story) -> None:
    """Disqualify a team after phase dev was revealed, and do not open that there."""
    disqualify("A", only_in="eval")(story)

    def files(before: dict[str, bytes]) -> dict[str, bytes]:
        document = {**json.loads(before[REVEAL]), "revealed_at": story.log[0].isoformat()}
        return {**before, REVEAL: json.dumps(document).encode()}

    story.on_files = files


def _in_one_phase_before_a_restore(story: Story) -> None:
    """Disqualify a team in one phase only, and say later that a backup was restored, which lacked no line of the log."""
    disqualify("A", only_in="eval")(story)
    at = story.of(events.PHASE)[-1].at
    fields = {"kind": events.CHALLENGE, "phase": None, "what": "restored", "text": "A backup was restored."}
    story.add(fields, at)
    number = story.due(at)
    none_lost = {"first": number, "last": number - 1}
    story.on_lines = lambda body: {**body, "restored": none_lost} if body["sequence"] == number else body


def _named_otherwise(story: Story) -> None:
    disqualify("A")(story)

    def files(before: dict[str, bytes]) -> dict[str, bytes]:
        words = "eam “A” was disqualified".encode(), "eam “C” was disqualified".encode()
        return {path: content.replace(*words) for path, content in before.items()}

    story.on_files = files


def _swap_names_at_the_end(story: Story) -> None:
    for team, other in (("A", "C"), ("C", "A")):
        for submission in story.sent_by(team):
            newest = [
                event for event in story.about(submission) if event.fields["kind"] == events.SUBMISSION
            ][-1]
            decide(story, events.SUBMISSION, newest, team=other)


def _closed_in_the_future(story: Story) -> None:
    """Claim that the board is closed as of a day that is still to come, so that it can go on until then."""
    close = story.of(events.PHASE)[-1]
    close.fields["closed_at"] = (close.at + timedelta(days=1)).isoformat()


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


def _on_last_board(change: Callable[[Board], Board]) -> Tell:
    return lambda story: setattr(
        story, "on_boards", lambda made: [*made[:-1], *(change(board) for board in made[-1:])]
    )


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


def _boards_without_ladder(story: Story) -> None:
    with_ladder(story)
    without = copy.deepcopy(story)
    for event in without.of(events.PHASE):
        event.fields["rules"] = {**event.fields["rules"], "selection": "last", "ladder_step": None}
    story.on_boards = lambda made: without.boards("dev") if made and made[0].phase == "dev" else made


def _boards_before_the_end(story: Story) -> None:
    """Promise to show no value before the close, answer by it, and publish boards nevertheless."""
    _from_the_start(story, shown="at_end")
    for event in story.of(events.SCORE):
        event.fields["q_mean"] = None


def _boards_of_backdated_closes(story: Story) -> None:
    """Do so, and register shortly before the close that each of these boards had closed the phase, which was opened again."""
    _boards_before_the_end(story)
    before = story.of(events.PHASE)[-2]
    for board in story.boards("dev"):
        decide(story, events.PHASE, before, closed_at=board.made_at.isoformat())
    decide(story, events.PHASE, before)


DECISIONS: dict[str, Lie] = {
    "boards of a phase that shows no values yet": Lie(
        _boards_before_the_end, "dev: boards", "board 1 was made before the close"
    ),
    "boards of a phase that is said later to have been closed then": Lie(
        _boards_of_backdated_closes, "dev: boards", "board 1 was made before the close"
    ),
    "a disqualified team on the board": Lie(
        _shown_nevertheless, "dev: boards", "the last board is not the one that follows from the register"
    ),
    "a disqualification that is dropped": Lie(disqualify("C", left_out=True), "register"),
    "a disqualification in another phase only": Lie(
        disqualify("A", only_in="eval"), "register", "was revealed with phase eval, but not with phase dev"
    ),
    "a disqualification after the reveal of another phase": Lie(
        _disqualified_after_one_reveal, "register", "was revealed with phase eval, but not with phase dev"
    ),
    "a disqualification in another phase only, before a restore": Lie(
        _in_one_phase_before_a_restore, "register", "was revealed with phase eval, but not with phase dev"
    ),
    "another team named as disqualified": Lie(_named_otherwise, "page"),
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
    "boards on which the last submission counts all the same": Lie(_boards_without_ladder, "dev: boards"),
    "a rule that asks for a phase without a commitment": Lie(
        lambda story: _from_the_start(story, eligible_if_scored_in="final"),
        "dev: boards",
        "ask for a score in phase final, to which there is no commitment",
    ),
    "unusual rules from the start": Lie(
        lambda story: _from_the_start(story, replicates=177), words='rules at the start: selection: "last"'
    ),
    "a baseline that comes last": Lie(
        _late_baseline, words="came as a late baseline (entries were ranked already) on"
    ),
    "the winner is disqualified": Lie(
        take_off(removed="too late"),
        words="of “A” was disqualified on 2023-09-1",
        receipt="the organizers disqualified it on 2023-09-1",
    ),
    "the winner's team is disqualified": Lie(
        disqualify("A"),
        words="team “A” was disqualified with all its submissions on 2023-09-1",
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
        take_off(own=True, method=BASELINE), words="of “A” became a baseline on"
    ),
    "the friend takes the winner's name": Lie(_swap_names_at_the_end, words="team “A” is now called “C” on"),
    "another selection at the end": Lie(
        lambda story: _change_rules(story, selection="best"),
        words='the rules changed (selection: "last" to "best")',
    ),
    "others are eligible at the end": Lie(
        lambda story: _change_rules(story, eligible_if_scored_in="eval"),
        words='eligible_if_scored_in: null to "eval"',
    ),
    "a last board from the future": Lie(
        _on_last_board(lambda board: replace(board, made_at=board.made_at.replace(year=2999))),
        "times",
        "of leaderboard/history.jsonl is dated in the future",
    ),
    "closed in the future": Lie(
        _closed_in_the_future,
        "dev: facts",
        words="was registered as closed at a later time",
    ),
    "closed before the winner sent": Lie(
        _closed_too_early,
        words="of “A” was answered after the board was closed",
        receipt="nothing published says why",
    ),
    "the last board is kept back": Lie(_last_board_kept_back, "dev: boards"),
}
