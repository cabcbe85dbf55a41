"""The boards: each that was ever published must be the one that follows from the register, and none may be missing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from leaderboard import Board
from leaderboard.ranking import Order, assess, from_json, order
from leaderboard.ranking import board as boards
from scoring.errors import OrganizerError
from scoring.printable import all_of
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

CHECK = "boards"
ROUNDING = 2e-9  # of sums in another order
NOTHING: frozenset[str] = frozenset()


def boards_follow(phase: RevealedPhase) -> Verdict:
    """Compare every board with the fold at its moment, the last one with its intervals, and check that no later one is missing."""
    if (needed := phase.fold.unknown_phase) is not None:
        return phase.not_revealed(
            CHECK, f"its rules ask for a score in phase {needed}, which has not been revealed"
        )
    before: Board | None = None
    last = len(phase.boards)
    for number, text in enumerate(phase.each_board(), 1):
        board = from_json(text)
        if (fault := _fault(phase, text, board, before, is_last=number == last)) is not None:
            return phase.contradicted(CHECK, f"board {number}, {fault}")
        before = board
    if (missing := _missing(phase, before)) is not None:
        return missing
    return phase.consistent(
        CHECK,
        f"{all_of(last, 'board')} {'follows' if last == 1 else 'follow'} from the register (the last one with its intervals), and no later"
        " board is missing",
    )


def _fault(
    phase: RevealedPhase, text: str, board: Board, before: Board | None, *, is_last: bool
) -> str | None:
    """Return the first difference between a board and the one that follows; None if there is none."""
    snapshot = phase.fold.snapshot(board.made_at)
    if snapshot is None or (before is not None and board.made_at <= before.made_at):
        return "made_at: it is from before the rules or the board before it"
    replicates = snapshot.rules.replicates
    try:
        ranked = assess(snapshot, replicates=replicates) if is_last else order(snapshot)
    except OrganizerError:
        return "its entries were scored with different numbers of folds"
    following = boards.following_board(snapshot, ranked, before, at=board.made_at, replicates=replicates)
    if is_last:
        published, follows = json.loads(text), json.loads(boards.to_json(following))
    else:
        published = _without_luck(board, board.private.weights, board.private.quality)
        follows = _without_luck(following, *_weights_and_quality(ranked))
        if published == follows:
            return None
    return next(differences(published, follows, exact=is_last), None)


def _without_luck(board: Board, weights: Mapping[str, float], quality: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a board as JSON without what only the bootstrap gives."""
    rows = tuple(replace(row, group=0) for row in board.standings)
    bare = replace(board, standings=rows, private=replace(board.private, figures=None))
    named = {" ".join(map(str, key)): dict(row) for key, row in quality.items()}
    return {**json.loads(boards.to_json(bare)), "weights": dict(weights), "quality": named}


def _weights_and_quality(ranked: Order | None) -> tuple[dict[str, float], dict[Any, dict[str, float]]]:
    """Return the weights of tasks, and the quality scores of each row."""
    if ranked is None:
        return {}, {}
    rows = zip(ranked.contenders, ranked.quality.tolist(), strict=True)
    return (
        dict(zip(ranked.tasks, ranked.ranking.weights, strict=True)),
        {contender.key: dict(zip(ranked.tasks, row, strict=True)) for contender, row in rows},
    )


def differences(published: Any, follows: Any, *, exact: bool, where: str = "") -> Iterator[str]:
    """Yield where two JSON values differ, such as ``standings 7: q_mean is 61.2, follows 60.9``."""
    if isinstance(published, Mapping) and isinstance(follows, Mapping):
        for name in sorted({*published, *follows}):
            place = f"{where}{': ' if where else ''}{name}"
            if name not in published or name not in follows:
                yield f"{place} is {'missing' if name in follows else 'unknown'}"
                continue
            yield from differences(published[name], follows[name], exact=exact, where=place)
    elif isinstance(published, list) and isinstance(follows, list):
        if len(published) != len(follows):
            yield f"{where} has {len(published)} rows, {len(follows)} follow"
        for number, (ours, theirs) in enumerate(zip(published, follows, strict=False), 1):
            yield from differences(ours, theirs, exact=exact, where=f"{where} {number}")
    elif not _same(published, follows, exact=exact):
        yield f"{where} is {json.dumps(published)}, follows {json.dumps(follows)}"


def _same(published: Any, follows: Any, *, exact: bool) -> bool:
    if exact or not isinstance(published, float) or not isinstance(follows, float):
        return bool(type(published) is type(follows) and published == follows)
    return math.isclose(published, follows, rel_tol=0, abs_tol=ROUNDING)


def _missing(phase: RevealedPhase, last: Board | None) -> Verdict | None:
    """Return the verdict on a board that the register requires after the last revealed one; None if it requires none."""
    fold = phase.fold
    snapshot = fold.snapshot(fold.closed_at)
    history = [] if last is None else [last]
    if snapshot is None:
        return None
    replicates = snapshot.rules.replicates
    if boards.next_board(snapshot, history, at=fold.closed_at, replicates=replicates) is None:
        return None
    if fold.frozen_at is None:
        return phase.not_revealed(
            CHECK,
            f"another board follows from what was registered until {fold.closed_at.isoformat()[:16]}; it was not published before"
            " the reveal, and can be checked after another reveal",
        )
    return phase.contradicted(CHECK, "the last board is not the one that follows from the register")
