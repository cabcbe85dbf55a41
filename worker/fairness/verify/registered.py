"""Checks of the register: committed to as it happened, nothing left out, and every board follows from it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeGuard

from leaderboard import Board
from leaderboard.ranking import board as boards
from leaderboard.rendering import history_lines
from scoring.printable import all_of, count_of
from worker.fairness import events, receipts
from worker.fairness.events import RENAMED
from worker.fairness.receipts import Line
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

SLACK = timedelta(minutes=15)  # of a push
SECOND = timedelta(seconds=1)  # a batch's time has whole seconds
CADENCES = 3  # intervals after which a batch is late or overdue


def in_the_log(phase: RevealedPhase) -> Verdict:
    """Check that every event was published as a commitment, in the batch that was due after it."""
    lines = {entry: line for line in phase.chain for entry in line.entries}
    every = receipts.cadence(phase.public)
    lost, late, longest = receipts.lost_lines(phase.chain), 0, timedelta()
    for commitment, event in phase.events:
        line, moment = lines.get(commitment), event.at
        told = f"the event {event.kind} of {moment.isoformat()}"
        if line is None:
            return phase.contradicted("register", f"{told} is not in the public log")
        number = line.sequence
        if moment > line.made_at + SECOND:
            return phase.contradicted(
                "register", f"{told} is in a batch that was made before the event happened"
            )
        before = phase.chain[number - 2] if number > 1 and number - 1 not in lost else None
        if before is not None and moment < before.made_at:
            return phase.contradicted("register", f"{told} was left out of the next batch")
        if _is_restore(event) and number != (event.last or 0) + 1:
            return phase.contradicted("register", f"{told} names other lines than those right before it")
        waited = line.made_at - moment
        if waited > CADENCES * every:
            late, longest = late + 1, max(longest, waited)
    if phase.chain and phase.revealed_at > phase.chain[-1].made_at + SLACK:
        return phase.contradicted(
            "register", "the reveal is dated later than the last line of the public log"
        )
    number = len(phase.events)
    told = f"{all_of(number, 'event')} of its register {'is' if number == 1 else 'are'} in the public log, each in the next batch"
    if late:
        hours = longest.total_seconds() / 3600
        return phase.believed(
            "register",
            f"{told}; but {late} of them {'was' if late == 1 else 'were'} published up to {hours:.0f} hours later than announced:"
            " the times that they give are taken on trust",
        )
    return phase.consistent("register", told)


def _is_restore(event: events.Event) -> TypeGuard[events.ChallengeEvent]:
    return isinstance(event, events.ChallengeEvent) and event.what == events.RESTORED


def private(phase: RevealedPhase) -> Verdict:
    """Report the number of entries that are shown only to exist."""
    number = len(phase.fold.private)
    if not number:
        return phase.consistent("private", "every registered entry was opened")
    return phase.believed(
        "private",
        f"{count_of(number, 'entry was', 'entries were')} opened only in part (private, refused, or a trial by the organizers): whose they"
        " are and what they scored is taken on trust. With a receipt, participants can check their own",
    )


def unopened(chain: Sequence[Line], phases: Iterable[RevealedPhase]) -> dict[int, int]:
    """Count in each line of the log the entries that nothing opens: neither an event nor a filler entry."""
    opened: set[str] = set()
    fillers: dict[int, str] = {}
    lost = receipts.lost_lines(chain)
    for phase in phases:
        opened |= {commitment for commitment, _ in phase.events}
        fillers |= {int(line): key for line, key in (phase.document.fillers or {}).items()}
    left = {}
    for line in chain:
        number, entries = line.sequence, line.entries
        if number in lost:
            continue
        key = bytes.fromhex(fillers[number]) if number in fillers else None
        filling = set() if key is None else {receipts.filler(key, place) for place in range(len(entries))}
        if count := sum(entry not in opened and entry not in filling for entry in entries):
            left[number] = count
    return left


CHECK = "boards"


def boards_follow(phase: RevealedPhase) -> Verdict:
    """Compare the published history with the boards of the fold, and check that no later board is missing."""
    fold, moments = phase.fold, phase.document.boards
    if (needed := fold.unknown_phase) is not None:
        return phase.not_revealed(
            CHECK, f"its rules ask for a score in phase {needed}, which has not been revealed"
        )
    if moments != sorted(set(moments)):
        return phase.contradicted(CHECK, "the times of its boards are not in order")
    shown = phase.published
    renamed_at = max((note.at for note in fold.notes if note.what == RENAMED), default=None)
    rows: tuple[dict[int, Any], dict[int, Any]] = {}, {}
    for number, (board, follows) in enumerate(history_lines(phase.site(phase.boards), phase.stem), 1):
        if number > len(shown):
            return phase.contradicted(CHECK, f"board {number} is not in the published history")
        line, text = shown[number - 1]
        published, expected = json.loads(text), json.loads(follows)
        if renamed_at is not None and line.made_at < renamed_at:
            published, expected = _replayed(rows[0], published, board), _replayed(rows[1], expected, board)
        elif text == follows:
            continue
        if (difference := next(differences(published, expected), None)) is not None:
            return phase.contradicted(CHECK, f"board {number}, {difference}")
    if any(line.made_at < phase.revealed_at for line in phase.later):
        return phase.contradicted(CHECK, f"board {len(phase.boards) + 1} is not among those of the reveal")
    return _complete(phase, lost=len(phase.history) - len(shown))


def _replayed(rows: dict[int, Any], line: Mapping[str, Any], board: Board) -> dict[str, Any]:
    """Apply a line to the rows so far, by submission; return it with all rows of its board, without names.

    The names that a history had before one was removed stay in it, so names, and which of them left, cannot be compared with those of the
    register.
    """
    rows |= {
        row["submission"]: {key: value for key, value in row.items() if key != "team"}
        for row in line["changed"]
    }
    present = {standing.submission for standing in board.standings}
    shown = sorted((row for row in rows.values() if row["submission"] in present), key=_position)
    return {**line, "changed": shown, "left": []}


def _position(row: Mapping[str, Any]) -> int:
    return int(row["position"])


def differences(published: Any, follows: Any, where: str = "") -> Iterator[str]:
    """Yield where two JSON values differ, such as ``changed 7: q_mean is 61.2, follows 60.9``."""
    if isinstance(published, Mapping) and isinstance(follows, Mapping):
        for name in sorted({*published, *follows}):
            place = f"{where}{': ' if where else ''}{name}"
            if name not in published or name not in follows:
                yield f"{place} is {'missing' if name in follows else 'unknown'}"
            else:
                yield from differences(published[name], follows[name], place)
    elif isinstance(published, list) and isinstance(follows, list) and len(published) == len(follows):
        for number, (ours, theirs) in enumerate(zip(published, follows, strict=True), 1):
            yield from differences(ours, theirs, f"{where} {number}")
    elif type(published) is not type(follows) or published != follows:
        yield f"{where} is {json.dumps(published)}, follows {json.dumps(follows)}"


def _complete(phase: RevealedPhase, *, lost: int) -> Verdict:
    """Return the verdict on a history whose boards all follow: whether one is missing, and what cannot be checked."""
    if phase.later:
        return phase.not_revealed(
            CHECK,
            f"the board changed {count_of(len(phase.later), 'time')} after the reveal; this can be checked after another reveal",
        )
    fold, last = phase.fold, phase.boards[-1:]
    snapshot = fold.snapshot(fold.closed_at)
    if snapshot is not None and boards.next_board(
        snapshot, last, at=fold.closed_at, replicates=snapshot.rules.replicates
    ):
        if fold.frozen_at is not None:
            return phase.contradicted(CHECK, "the last board is not the one that follows from the register")
        return phase.not_revealed(
            CHECK,
            f"another board follows from what was registered until {fold.closed_at.isoformat()[:16]}; it was not published before"
            " the reveal, and can be checked after another reveal",
        )
    if lost:
        return phase.believed(
            CHECK,
            f"{count_of(lost, 'board of its history is', 'boards of its history are')} taken on trust, because the state was restored"
            " from an older backup; the others follow from the register",
        )
    number = len(phase.boards)
    return phase.consistent(
        CHECK,
        f"{all_of(number, 'published board')} {'follows' if number == 1 else 'follow'} from the register, and no later board is missing",
    )
