"""Checks of the register: committed to as it happened, nothing left out, and every board follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from leaderboard import Board, PhaseSnapshot
from leaderboard.ranking import REPLICATES, counted
from leaderboard.ranking import board as boards
from scoring.printable import all_of, count_of
from worker.fairness import events, receipts
from worker.fairness.verify.replay import Register
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

SECOND = timedelta(seconds=1)  # a batch's time has whole seconds
CADENCES = 3  # intervals after which a batch is late or overdue


def in_the_log(phase: RevealedPhase) -> Verdict:
    """Check that every event was published as a commitment, in the batch that was due after it."""
    lines = {str(entry): line for line in phase.chain for entry in line["entries"]}
    lost, late, longest = receipts.lost_lines(phase.chain), 0, timedelta()
    for commitment, fields in phase.events:
        line = lines.get(commitment)
        told = f"the event {fields['kind']} of {fields['at']}"
        if line is None:
            return phase.contradicted("register", f"{told} is not in the public log")
        moment, number = datetime.fromisoformat(fields["at"]), int(line["sequence"])
        if moment > receipts.made_at(line) + SECOND:
            return phase.contradicted(
                "register", f"{told} is in a batch that was made before the event happened"
            )
        before = phase.chain[number - 2] if number > 1 and number - 1 not in lost else None
        if before is not None and moment < receipts.made_at(before):
            return phase.contradicted("register", f"{told} was left out of the next batch")
        if (
            fields["kind"] == events.CHALLENGE
            and fields["what"] == "restored"
            and number != fields["last"] + 1
        ):
            return phase.contradicted("register", f"{told} names other lines than those right before it")
        waited = receipts.made_at(line) - moment
        if waited > CADENCES * timedelta(seconds=receipts.cadence(line)):
            late, longest = late + 1, max(longest, waited)
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


def private(phase: RevealedPhase) -> Verdict:
    """Report the number of entries that are shown only to exist."""
    number = len(phase.register.private)
    if not number:
        return phase.consistent("private", "every registered entry was opened")
    return phase.believed(
        "private",
        f"{count_of(number, 'entry was', 'entries were')} opened only in part (private, refused, or a trial by the organizers): whose they"
        " are and what they scored is taken on trust. With a receipt, participants can check their own",
    )


def replayed(phase: RevealedPhase, registers: Mapping[str, Register]) -> Verdict:
    """Recompute the boards from the register: check what decided each of them, all of the last one, and that the last one was due.

    Args:
        phase: The phase.
        registers: The registers of all revealed phases, for rules that refer to another one.
    """
    if (needed := phase.register.unknown_phase(registers)) is not None:
        return phase.not_revealed(
            "replay", f"its rules ask for a score in phase {needed}, which has not been revealed"
        )
    history: list[Board] = []
    last = len(phase.boards)
    for number, board in enumerate(phase.each_board(), 1):
        snapshot = phase.register.snapshot(
            board.made_at, epsilon=phase.epsilon_at(board.made_at), elsewhere=registers
        )
        if (
            snapshot is None
            or board.sequence != number
            or not _follows(board, snapshot, history)
            or (number == last and not _is_made(phase, board, snapshot, history))
        ):
            return phase.contradicted("replay", f"board {board.sequence} does not follow from the register")
        history = [board]
    if (missing := _missing(phase, history, registers)) is not None:
        return missing
    return phase.consistent(
        "replay",
        f"{all_of(last, 'board')} {'follows' if last == 1 else 'follow'} from the register (the last one byte for byte), and no later board"
        " is missing",
    )


def _follows(board: Board, snapshot: PhaseSnapshot, history: list[Board]) -> bool:
    """Return whether a board has these facts and rows, and comes after the one before it."""
    contenders = counted(snapshot)
    if board.private.fingerprint != boards.fingerprint(snapshot, contenders, _replicates(board)):
        return False
    if board.rules_then(snapshot.rules) != snapshot.rules:
        return False
    known = {row.submission for before in history for row in before.standings}
    shown = sorted(
        (
            row.key,
            row.team,
            row.submission,
            row.baseline,
            row.eligible,
            row.submissions,
            row.last_submitted_at,
        )
        for row in board.standings
    )
    made = sorted(
        (
            one.key,
            one.name,
            one.entry.submission,
            one.entry.baseline,
            one.entry.eligible,
            one.submissions,
            one.last_submitted_at,
        )
        for one in contenders
    )
    fresh = tuple(sorted({one.entry.submission for one in contenders} - known))
    return (
        shown == made
        and board.triggers == fresh
        and all(before.made_at < board.made_at for before in history)
    )


def _is_made(phase: RevealedPhase, board: Board, snapshot: PhaseSnapshot, history: list[Board]) -> bool:
    """Return whether a board is byte for byte what the worker makes from these facts."""
    before = [_unnamed(phase, one) for one in history]
    made = boards.next_board(snapshot, before, at=board.made_at, replicates=_replicates(board))
    return made is not None and boards.to_json(made) == boards.to_json(board)


def _unnamed(phase: RevealedPhase, board: Board) -> Board:
    """Blank the names of renamed teams, because a board may have been made with a name that was removed later."""
    removed = phase.pseudonyms
    rows = (replace(row, team="") if row.team_key in removed else row for row in board.standings)
    return replace(board, standings=tuple(rows))


def _missing(phase: RevealedPhase, history: list[Board], registers: Mapping[str, Register]) -> Verdict | None:
    """Return the verdict on a board that the register requires after the last revealed one; None if it requires none."""
    frozen_at = phase.register.decisions.events[-1]["frozen_at"]
    ended = phase.register.end if frozen_at is None else datetime.fromisoformat(frozen_at)
    snapshot = phase.register.snapshot(ended, epsilon=phase.epsilon_at(ended), elsewhere=registers)
    if snapshot is None:
        return None
    replicates = _replicates(history[-1]) if history else 1
    if boards.next_board(snapshot, history, at=ended, replicates=replicates) is None:
        return None
    if frozen_at is None:
        return phase.not_revealed(
            "replay",
            f"another board follows from what was registered until {ended.isoformat()[:16]}; it was not published before"
            " the reveal, and can be checked after another reveal",
        )
    return phase.contradicted("replay", "the last board is not the one that follows from the register")


def _replicates(board: Board) -> int:
    figures = board.private.figures
    return REPLICATES if figures is None else figures.replicates


def unopened(chain: Iterable[Mapping[str, Any]], phases: Iterable[RevealedPhase]) -> dict[int, int]:
    """Count in each line of the log the entries that nothing opens: neither an event nor a filler entry."""
    opened: set[str] = set()
    fillers: dict[int, str] = {}
    chain = list(chain)
    lost = receipts.lost_lines(chain)
    for phase in phases:
        opened |= {commitment for commitment, _ in phase.events}
        fillers |= {int(line): key for line, key in (phase.document["fillers"] or {}).items()}
    left = {}
    for line in chain:
        number = int(line["sequence"])
        if number in lost:
            continue
        entries = line["entries"]
        key = bytes.fromhex(fillers[number]) if number in fillers else None
        filling = set() if key is None else {receipts.filler(key, place) for place in range(len(entries))}
        if count := sum(entry not in opened and entry not in filling for entry in entries):
            left[number] = count
    return left
