"""Checks of the register: that it was committed to as it happened, that nothing of it was left out, and that the boards follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from leaderboard import Board
from leaderboard.ranking import REPLICATES, counted
from leaderboard.ranking import board as boards
from worker.fairness import membership, receipts
from worker.fairness.verify.replay import Register
from worker.fairness.verify.revealed import UNREADABLE, RevealedPhase
from worker.fairness.verify.verdict import Verdict

SECOND = timedelta(seconds=1)  # a batch tells its time to the second


def checks(phase: RevealedPhase, others: Mapping[str, RevealedPhase]) -> Iterator[Verdict]:
    """Check the register of a revealed phase.

    Args:
        phase: The phase.
        others: All revealed phases, for rules that speak of another one.
    """
    for name, look in (("register", in_the_log), ("decisions", decisions), ("private", private)):
        try:
            yield look(phase)
        except UNREADABLE as error:
            yield phase.contradicted(name, f"the register cannot be read ({type(error).__name__})")
    try:
        yield replayed(phase, others)
    except UNREADABLE as error:
        yield phase.contradicted("replay", f"the register cannot be read ({type(error).__name__})")


def in_the_log(phase: RevealedPhase) -> Verdict:
    """Check that every event was published as a commitment, in the batch that was due after it."""
    lines = {str(entry): line for line in phase.chain for entry in receipts.entries_of(line)}
    lost = phase.register.lost_lines
    for commitment, fields in phase.events:
        line = lines.get(commitment)
        told = f"the event {fields['kind']} of {fields['at']}"
        if line is None:
            return phase.contradicted("register", f"{told} is not in the public log")
        moment, number = datetime.fromisoformat(fields["at"]), int(line["sequence"])
        if moment > datetime.fromisoformat(line["made_at"]) + SECOND:
            return phase.contradicted("register", f"{told} is in a batch that was made before it")
        before = phase.chain[number - 2] if number > 1 and number - 1 not in lost else None
        if before is not None and moment < datetime.fromisoformat(before["made_at"]):
            return phase.contradicted("register", f"{told} was left out of the batch that was due after it")
    return phase.consistent(
        "register",
        f"all {len(phase.events)} events of its register are in the public log, each in the batch after it",
    )


def decisions(phase: RevealedPhase) -> Verdict:
    """Tell what organizers decided while the phase ran: rules, removals, choices."""
    told = [*_changes(phase.register), *_removals(phase.register)]
    told += [f"on {note['at'][:16]} it was noted: {note['text']}" for note in phase.register.notes]
    if not told:
        return phase.consistent("decisions", "its rules never changed, and nobody was taken off the board")
    return phase.consistent("decisions", f"decided on the way: {'; '.join(told)}")


def _changes(register: Register) -> Iterator[str]:
    for earlier, later in pairwise(register.decisions.events):
        rules = [name for name in later["rules"] if later["rules"][name] != earlier["rules"].get(name)]
        found = [f"the rules {', '.join(rules)} changed"] if rules else []
        if (later["tasks"], later["protocol"]) != (earlier["tasks"], earlier["protocol"]):
            found.append("tasks or protocol changed and everything was scored again")
        if later["chosen"] != earlier["chosen"]:
            found.append("the organizers chose which submission of a team counts")
        if later["frozen_at"] != earlier["frozen_at"]:
            found.append(
                "the board was opened again" if later["frozen_at"] is None else "the board was closed"
            )
        if found:
            reason = f" ({later['reason']})" if later["reason"] else ""
            yield f"{', '.join(found)} on {later['at'][:16]}{reason}"


def _removals(register: Register) -> Iterator[str]:
    for history in register.submissions.values():
        for earlier, later in pairwise([None, *history.events]):
            before = None if earlier is None else membership.taken_off(earlier)
            now = None if later is None else membership.taken_off(later)
            if later is not None and now is not None and now != before:
                yield f"submission {later['submission']} of {later['team']} was taken off on {later['at'][:16]}: {now}"


def private(phase: RevealedPhase) -> Verdict:
    """Tell how many entries are shown to exist, and no more."""
    number = len(phase.register.private)
    if not number:
        return phase.consistent("private", "every entry that was registered is open")
    return phase.believed(
        "private",
        f"{number} entries are private, refused or trials of the organizers, and opened in part: whose they are and what"
        " they scored can only be believed; a participant's receipt opens their own",
    )


def replayed(phase: RevealedPhase, others: Mapping[str, RevealedPhase]) -> Verdict:
    """Make the boards again from the register: what decided each of them, the last one whole, and that none is missing."""
    registers = {name: other.register for name, other in others.items()}
    history: list[Board] = []
    last, early = len(phase.boards), 0
    for board in phase.each_board():
        snapshot = phase.register.snapshot(
            board.made_at, epsilon=phase.epsilon_at(board.made_at), elsewhere=registers
        )
        if snapshot is None:
            early, history = early + 1, [board]
            continue
        replicates = _replicates(board)
        if board.private.fingerprint != boards.fingerprint(snapshot, counted(snapshot), replicates):
            return phase.contradicted("replay", f"board {board.sequence} does not follow from the register")
        if board.sequence == last:
            made = boards.next_board(snapshot, history[-1:], at=board.made_at, replicates=replicates)
            if made is None or boards.to_json(made) != boards.to_json(board):
                return phase.contradicted(
                    "replay", f"board {board.sequence} does not follow from the register"
                )
        history = [board]
    if early and phase.public[0]["format"] == receipts.FORMAT:
        return phase.contradicted("replay", f"{early} boards were made before anything was registered")
    if (missing := _missing(phase, history, registers)) is not None:
        return missing
    if early:
        return phase.believed(
            "replay",
            f"its first {early} boards are from before there was a register; the other {last - early} follow from it",
        )
    return phase.consistent(
        "replay",
        f"all {last} boards follow from the register, the last one byte for byte, and none is missing",
    )


def _missing(phase: RevealedPhase, history: list[Board], registers: Mapping[str, Register]) -> Verdict | None:
    """Tell whether the register asks for a board after the last one that was revealed."""
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
            "replay", "the board changed in the moment of the reveal; that waits for another reveal"
        )
    return phase.contradicted("replay", "the last board is not the one that follows from the register")


def _replicates(board: Board) -> int:
    figures = board.private.figures
    return REPLICATES if figures is None else figures.replicates


def unopened(chain: Iterable[Mapping[str, Any]], phases: Iterable[RevealedPhase]) -> dict[int, int]:
    """Count the entries of each line of the log that nothing opens: neither an event nor what fills the line up."""
    opened: set[str] = set()
    fillers: dict[int, str] = {}
    lost: set[int] = set()
    for phase in phases:
        opened |= {commitment for commitment, _ in phase.events}
        fillers |= {int(line): key for line, key in (phase.document["fillers"] or {}).items()}
        lost |= phase.register.lost_lines
    left = {}
    for line in chain:
        number = int(line["sequence"])
        if line["format"] != receipts.FORMAT or number in lost:
            continue
        entries = receipts.entries_of(line)
        key = bytes.fromhex(fillers[number]) if number in fillers else None
        filling = set() if key is None else {receipts.filler(key, place) for place in range(len(entries))}
        if count := sum(entry not in opened and entry not in filling for entry in entries):
            left[number] = count
    return left
