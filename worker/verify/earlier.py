"""Earlier versions: what the challenge signed before follows too, so that nothing can be shown for weeks and put right at the end.

Bytes are compared for the newest commit only. Of every earlier version of a phase's JSON, the rows are those of its board, from the
register or, before the reveal, from the history, and rules and close are those that were registered then. Decisions, methods and links
that are not in the register are told, because another version may write them otherwise. All else in earlier commits (HTML, README, figures,
groups, reasons for moves) is taken on trust.
"""

from __future__ import annotations

import io
import json
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from itertools import count, pairwise, takewhile

from leaderboard import Board, Decision, Terms
from leaderboard.rendering import HISTORY, EntryRow, PhaseDocument, display_name, each_board, row_values
from scoring.printable import count_of, name_some
from worker.fairness import events
from worker.fairness.decisions import decisions
from worker.fairness.disclosure import register_path
from worker.fairness.documents import Malformed, read
from worker.fairness.events import SubmissionEvent
from worker.fairness.register import LATEST
from worker.verify.commits import Step
from worker.verify.decisions import told
from worker.verify.public import PublicRepository
from worker.verify.revealed import RevealedPhase
from worker.verify.verdict import CheckEnded, Verdict, believed, consistent, not_revealed, require

IN_REGISTER = {"rank_if_competing", "last_submission"}
"""What the register tells of a row, and the history does not."""
UNCOMPARED = {"group", "why", "method", "project_url", "publication_url"}
"""What neither tells of a row: groups come from random replicates, and another version may write the words otherwise."""
ROW = EntryRow.model_fields.keys() - UNCOMPARED
LIMITS = ("ends_at", "per_day", "per_month", "in_all")


def documents(repository: PublicRepository, name: str, phase: RevealedPhase | None) -> Iterator[Verdict]:
    """Compare each version of a phase's JSON that the challenge has signed with the history, the register and the commitments.

    Args:
        repository: The public files.
        name: Codename.
        phase: The phase, if it is revealed.
    """
    if repository.commit is None:
        return
    boards = _boards(repository, name, phase)
    moments = sorted(at for _, at in boards)
    path, number, stated, unread = f"leaderboard/{name}.json", 0, dict[Terms, Step](), list[str]()
    words, others = set() if phase is None else _registered(phase), dict[str, Step]()
    for step, content in repository.latest(path):
        try:
            document = read(PhaseDocument, content, path)
        except Malformed:
            unread.append(str(step))
            continue
        where = f"the board {document.sequence} that {step} showed"
        require(document.phase == name, f"{where} is of another phase")
        _compare_board(document, boards, where)
        newest = repository.newest_board(name, step.version(HISTORY).size)
        require(
            document.sequence == newest or repository.may_show_again(document.made_at),
            f"{where} was not the newest one then, which was board {newest}",
        )
        if phase is not None:
            _compare_rules(document, phase, moments, where)
            others |= dict.fromkeys(_words(document.decisions, document.entries) - words, step)
        if document.terms is not None:
            stated[document.terms] = step
        number += 1
    dimensions = {entry.embedding_dim for entry in repository.announced(name)}
    for terms, step in stated.items():
        require(
            terms.embedding_dim in dimensions,
            f"{step} asked for {count_of(terms.embedding_dim, 'number')} per id, to which there is no commitment",
        )
    if phase is not None:
        yield from _closed_again(repository, phase)
    if number:
        yield consistent(
            f"what the challenge signed earlier follows from the history ({count_of(number, 'version')})"
        )
    if unread:
        yield believed(
            f"{path} has another form than this version's, and was not compared, in {name_some(unread)}"
        )
    if others:
        listed = name_some(sorted(f"“{said}” in {step}" for said, step in others.items()))
        yield believed(f"{path} has said what is not in the register: {listed}")
    if changes := [change for pair in pairwise(reversed(stated.items())) if (change := _changes(*pair))]:
        yield believed(
            f"deadline or limits, which are the organizers' words, were stated otherwise before: {name_some(changes)}"
        )


def _closed_again(repository: PublicRepository, phase: RevealedPhase) -> Iterator[Verdict]:
    """Say if an earlier version of its register opened more of an event than the newest one."""
    shown = {commitment: type(event).model_fields.keys() for commitment, event in phase.events}
    gone = dict[str, Step]()
    for step, line in _register_lines(repository, phase.name):
        if step != repository.commit:
            commitment, fields = events.read_opening(json.loads(line))
            if not fields.keys() <= shown.get(commitment, set()):
                gone[commitment] = step
    if steps := set(gone.values()):
        is_lost = all(map(repository.is_restored_since, steps))
        yield (believed if is_lost else not_revealed)(
            f"{name_some(sorted(map(str, steps)))} revealed more of {count_of(len(gone), 'event')} of its register than is revealed now"
        )


def _register_lines(repository: PublicRepository, name: str) -> Iterator[tuple[Step, bytes]]:
    """Yield the distinct lines of all versions of a register, newest first, each with the last commit that has it."""
    seen = set[int]()
    parts = (register_path(name, number) for number in count(1))
    for path in takewhile(lambda path: any(repository.latest(path)), parts):
        for step, content in repository.latest(path):
            for line in io.BytesIO(content):
                if hash(line) not in seen:
                    seen.add(hash(line))
                    yield step, line


def _registered(phase: RevealedPhase) -> set[str]:
    """Return the decisions, methods and links in a register; a decision was shown without a team's name if it had no public entry yet."""
    facts = (event for history in phase.replay.submissions.values() for event in history.events)
    return _words([*decisions(phase.replay), *decisions(phase.replay, ())], facts)


def _words(decided: Iterable[Decision], described: Iterable[EntryRow | SubmissionEvent]) -> set[str]:
    """Return decisions, and the methods and links of submissions, as they are told."""
    return set(map(told, decided)) | {
        f"{display_name(words)} under submission {row.submission}"
        for row in described
        for words in filter(None, (row.method, row.project_url, row.publication_url))
    }


Boards = Mapping[tuple[int, datetime], tuple[Board, Collection[str]]]
"""Number and time to board, and which fields of its rows are known."""


def _boards(repository: PublicRepository, name: str, phase: RevealedPhase | None) -> Boards:
    """Return the boards of a phase, from its register as far as that is known, otherwise from the history."""
    lines = (line for line, _ in repository.boards(name))
    boards = {(board.sequence, board.made_at): (board, ROW - IN_REGISTER) for board in each_board(lines)}
    if phase is not None and phase.replay.unknown_phase is None:
        for board in phase.boards:
            boards[board.sequence, board.made_at.replace(microsecond=0)] = board, ROW
    return boards


def _compare_board(document: PhaseDocument, boards: Boards, where: str) -> None:
    """Compare the rows of a document with those of its board."""
    if document.made_at is None or not document.sequence:
        require(not document.entries, f"{where} has entries, but no place in the history")
        return
    found = boards.get((document.sequence, document.made_at))
    if found is None:
        raise CheckEnded(f"{where} is not in the history")
    board, fields = found
    require(len(document.entries) == len(board.standings), f"{where} has other rows than in the history")
    require(document.triggers == board.triggers, f"{where} names other submissions as new than the history")
    rows = zip(document.entries, row_values(board, board.rounding), strict=True)
    for place, (row, follows) in enumerate(rows, 1):
        differing = sorted(name for name in fields if getattr(row, name) != follows[name])
        require(
            not differing,
            f"{where} has another {', '.join(differing)} in row {place}, “{row.team}”, than follows",
        )


def _compare_rules(
    document: PhaseDocument, phase: RevealedPhase, moments: Sequence[datetime], where: str
) -> None:
    """Check that rules and close were registered at some time from this board to the next one; ``moments`` are those of all boards."""
    decisions, restored_at = phase.replay.decisions, phase.replay.restored_at
    begins = document.made_at or decisions.events[0].at
    place = bisect_right(moments, begins)
    ends = moments[place] if place < len(moments) else LATEST
    later = (event for event in decisions.events if begins < event.at)
    possible = [decisions.at(begins), *(event for event in later if event.at.replace(microsecond=0) <= ends)]
    registered = [
        (event.rules, event.closed_at and event.closed_at.replace(microsecond=0))
        for event in possible
        if event is not None
    ]
    require(
        (document.rules, document.closed_at) in registered
        or (restored_at is not None and begins < restored_at),
        f"{where} states other rules or another close than those that were registered then",
    )


def _changes(earlier: tuple[Terms, Step], later: tuple[Terms, Step]) -> str:
    """Return which limits changed, from what to what, and with which commit."""
    before, after = asdict(earlier[0]), asdict(later[0])
    # A worker that has not read EvalAI yet knows no limit.
    is_known = any(before[name] is not None for name in LIMITS)
    words = [
        f"{name} from {before[name] or 'none'} to {after[name] or 'none'}"
        for name in LIMITS
        if is_known and before[name] != after[name]
    ]
    return f"{', '.join(words)} ({later[1]})" if words else ""
