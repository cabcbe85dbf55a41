"""Checks of the register: committed to as it happened, nothing left out, and every board follows from it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from itertools import permutations

from leaderboard.ranking import board as boards
from leaderboard.rendering import history_lines
from scoring.documents import canonical
from scoring.printable import all_of, count_of, duration_of
from worker.fairness import receipts
from worker.fairness.events import RESTORED, ChallengeEvent
from worker.participant.challenge import MISSED
from worker.verify.pages import difference
from worker.verify.public import PublicRepository
from worker.verify.revealed import RevealedPhase
from worker.verify.timeline import SLACK
from worker.verify.verdict import CheckEnded, Verdict, believed, consistent, not_revealed, require

SECOND = timedelta(seconds=1)  # a batch's time has whole seconds


def in_the_log(phase: RevealedPhase) -> Verdict:
    """Check that every event was published as a commitment, in the batch that was due after it."""
    log = phase.repository.log
    lines = {entry: line for line in log for entry in line.entries}
    every = receipts.cadence(phase.repository.commitments)
    lost, waits = receipts.lost_lines(log), list[timedelta]()
    for commitment, event in phase.events:
        line, what = lines.get(commitment), f"the event {event.kind} of {event.at.isoformat()}"
        if line is None:
            raise CheckEnded(f"{what} is not in the public log")
        number = line.sequence
        require(
            event.at <= line.made_at + SECOND, f"{what} is in a batch that was made before the event happened"
        )
        before = log[number - 2] if number > 1 and number - 1 not in lost else None
        require(before is None or event.at >= before.made_at, f"{what} was left out of the next batch")
        if isinstance(event, ChallengeEvent) and event.what == RESTORED:
            require(line.restored is not None, f"{what} is in a batch that does not report a restored backup")
        waits.append(line.made_at - event.at)
    require(
        not log or phase.document.revealed_at <= log[-1].made_at + SLACK,
        "the reveal is dated later than the last line of the public log",
    )
    late = [waited for waited in waits if waited > MISSED * every]
    are = "is" if len(waits) == 1 else "are"
    sentence = (
        f"{all_of(len(waits), 'event')} of its register {are} in the public log, each in the next batch"
    )
    if late:
        longest = duration_of(max(late).total_seconds())
        return believed(
            f"{sentence}; but {len(late)} of them {'was' if len(late) == 1 else 'were'} published up to {longest} later than announced:"
            " the times that they give are taken on trust"
        )
    return consistent(sentence)


def private(phase: RevealedPhase) -> Verdict:
    """Report the number of entries that are shown only to exist."""
    number = len(phase.replay.private)
    if not number:
        return consistent("every registered entry was opened")
    return believed(
        f"{count_of(number, 'entry was', 'entries were')} opened only in part (private, refused, not answered, or a trial by the"
        " organizers): whose they are and what they scored is taken on trust. With a receipt, participants can check their own"
    )


def nothing_left_out(repository: PublicRepository, revealed: Collection[RevealedPhase]) -> Iterator[Verdict]:
    """Check that the whole log was opened, once every phase is revealed, and what concerns all phases in each of them."""
    for phase, other in permutations(revealed, 2):
        _check_everywhere(phase, other)
    log = repository.log
    if lost := sorted(receipts.lost_lines(log)):
        yield believed(
            f"{count_of(len(lost), 'line')} of the public log (from line {lost[0]} to line {lost[-1]}) cannot be opened: according to the"
            " organizers, the keys were lost when the state was restored from a backup. The content is taken on trust"
        )
    left = _unopened([line for line in log if line.sequence not in lost], revealed)
    if not left:
        yield consistent(f"every {'other ' if lost else ''}entry of the public log was opened")
        return
    number = sum(left.values())
    sentence = (
        f"{count_of(number, 'entry', 'entries')} in {count_of(len(left), 'line')} of the public log"
        f" {'has' if number == 1 else 'have'} not been opened"
    )
    if len(revealed) < len(repository.phases):
        yield not_revealed(f"{sentence}: not all phases have been revealed, and some entries may be padding")
    else:
        raise CheckEnded(f"{sentence}, although every phase has been revealed")


def _check_everywhere(phase: RevealedPhase, other: RevealedPhase) -> None:
    """Check that a phase's register has the events of the whole challenge that another one has, and none of its submissions."""
    for history in other.replay.submissions.values():
        submission = history.events[0].submission
        require(
            phase.replay.entry_of(submission) is None,
            f"submission {submission} is registered in phase {other.name} and in phase {phase.name}",
        )
    opened = {commitment for commitment, _ in phase.events}
    for commitment, event in other.events:
        if event.phase is None:
            require(
                commitment in opened,
                f"the event {event.kind} of {event.at.isoformat()} was revealed with phase {other.name}, but not with phase {phase.name}",
            )


def _unopened(log: Sequence[receipts.Line], revealed: Collection[RevealedPhase]) -> dict[int, int]:
    """Count in each line of the log the entries that nothing opens: neither an event nor a filler entry."""
    opened = {commitment for phase in revealed for commitment, _ in phase.events}
    keys = {line: key for phase in revealed for line, key in (phase.document.fillers or {}).items()}
    left = {}
    for line in log:
        key, places = keys.get(str(line.sequence)), range(len(line.entries))
        filling = {receipts.filler(bytes.fromhex(key), place) for place in places} if key else set()
        if count := len(set(line.entries) - opened - filling):
            left[line.sequence] = count
    return left


def boards_follow(phase: RevealedPhase) -> Verdict:
    """Compare the published history with the boards of the replay: no later one is missing, and none shows withheld values."""
    replay, moments = phase.replay, phase.document.boards
    if (needed := replay.unknown_phase) is not None:
        committed = needed in phase.repository.phases
        require(committed, f"its rules ask for a score in phase {needed}, to which there is no commitment")
        return not_revealed(f"its rules ask for a score in phase {needed}, which has not been revealed")
    require(moments == sorted(set(moments)), "the times of its boards are not in order")
    closes = {
        event.closed_at
        for event in replay.decisions.events
        if event.closed_at is not None and event.at - event.closed_at <= SLACK  # not one that was backdated
    }
    for number, moment in enumerate(moments, 1):
        require(
            moment in closes or not replay.withholds(moment),
            f"board {number} was made before the close, until which its rules withheld all values",
        )
    lines = history_lines(phase.site)
    require(
        len(phase.published) == len(phase.boards),
        f"the published history has {len(phase.published)} of its boards, and the reveal {len(phase.boards)}",
    )
    for number, ((_, follows), (_, text)) in enumerate(zip(lines, phase.published, strict=True), 1):
        if text == follows:
            continue
        # Values are compared, because another version may write them with other spaces.
        values = (canonical(json.loads(line)) for line in (text, follows))
        if (differs := difference(f"board {number}", *values)) is not None:
            raise CheckEnded(differs)
    return _complete(phase)


def _complete(phase: RevealedPhase) -> Verdict:
    """Return the verdict on a history whose boards all follow: whether one is missing, and what cannot be checked."""
    replay, lost = phase.replay, len(phase.repository.boards(phase.name)) - len(phase.published)
    snapshot = replay.snapshot(replay.ends_at)
    follows = None if snapshot is None else boards.next_board(snapshot, phase.boards[-1:], at=replay.ends_at)
    require(follows is None, "the last board is not the one that follows from the register")
    if lost:
        return believed(
            f"{count_of(lost, 'board of its history is', 'boards of its history are')} taken on trust, because the state was restored"
            " from an older backup; the others follow from the register"
        )
    number = len(phase.boards)
    return consistent(
        f"{all_of(number, 'published board')} {'follows' if number == 1 else 'follow'} from the register, and no later board is missing"
    )
