"""Check of the public value that decides a phase's splits: named before anybody could know it, and drawn once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from worker.fairness import draws
from worker.fairness.drand import QUICKNET, is_signed, value_of
from worker.fairness.draws import Draw
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

CHECK = "beacon"


def drawn(phase: RevealedPhase) -> Verdict:
    """Tell what decided the splits of a phase, and whether anybody could have chosen it."""
    told: list[tuple[Draw, Mapping[str, Any], Mapping[str, Any]]] = []
    open_one: tuple[Draw, Mapping[str, Any]] | None = None
    missed = 0
    for entry in phase.public:
        if (draw := draws.named(entry, phase.name)) is not None:
            missed += open_one is not None and open_one[0].at <= datetime.fromisoformat(entry["made_at"])
            open_one = (draw, entry)
        if (value := draws.drawn(entry, phase.name)) is not None:
            if open_one is None:
                return phase.contradicted(CHECK, "a value was mixed into its splits that nobody had named")
            told.append((*open_one, value))
            open_one = None
    if open_one is not None:
        return phase.contradicted(
            CHECK, f"the value that commitment {open_one[0].sequence} names was never mixed into its splits"
        )
    if not told:
        return _undrawn(phase)
    for draw, naming, value in told:
        if (lie := _lie(draw, naming, value)) is not None:
            return phase.contradicted(CHECK, lie)
    return _judged(phase, told[-1][0], told[-1][2], times=len(told) + missed)


def _undrawn(phase: RevealedPhase) -> Verdict:
    beacon = phase.latest.beacon
    if beacon is None:
        return phase.believed(
            CHECK,
            "no public beacon was mixed into its splits: the organizers could have chosen them among many, and that they did not is"
            f" believed{_needed(phase)}",
        )
    return phase.believed(
        CHECK,
        f"the beacon “{beacon}” was mixed into its splits: that it is the public value that it names is believed",
    )


def _needed(phase: RevealedPhase) -> str:
    """Say how many draws it would have taken to put another team first, as far as the folds of the last board tell."""
    board = phase.boards[-1] if phase.boards else None
    if board is None or board.private.figures is None:
        return ""
    competing = {row.submission: row.rank for row in board.standings if row.numbered}
    if len(competing) < 2:
        return ""
    figures = board.private.figures
    p_first = min(row.p_first for row in figures.rows if competing.get(row.submission) == 1)
    return f"; to put another team first, {tries(p_first, figures.replicates)}"


def tries(p_first: float, replicates: int) -> str:
    """Say how many other draws are enough for another winner.

    Args:
        p_first: Share of the bootstrap's replicates in which the winner stays first. The folds are independent draws of splits, so
            resampling them stands for drawing other splits; tests/README.md compares it with real draws.
        replicates: Their number: it limits how rare a change can be told.
    """
    other, most = 1 - p_first, replicates // 2
    if other * most < 1:
        return f"more than {most:,} tries would have been needed"
    number = max(2, round(1 / other))
    return f"about {round(number, 2 - len(str(number))):,} tries would have been enough"


def _lie(draw: Draw, naming: Mapping[str, Any], value: Mapping[str, Any]) -> str | None:
    """Return what contradicts a draw, None if nothing does."""
    if datetime.fromisoformat(naming["made_at"]) >= draw.at:
        return f"commitment {draw.sequence} names a value of {draw.source} that was known already"
    if draw.chain is None or draw.round is None:
        return None
    if draw.chain.made_at(draw.round) != draw.at:
        return f"round {draw.round} of {draw.source} is not made when commitment {draw.sequence} says"
    if draw.source == QUICKNET.name and draw.chain != QUICKNET:
        return f"commitment {draw.sequence} names {draw.source} and means another chain"
    if int(value["round"]) != draw.round:
        return f"round {int(value['round'])} was mixed into its splits, and round {draw.round} was named"
    signature = str(value["signature"])
    if not is_signed(draw.chain, draw.round, signature) or value["value"] != value_of(signature):
        return f"the value that was mixed into its splits is not that of round {draw.round} of {draw.source}"
    return None


def _judged(phase: RevealedPhase, draw: Draw, value: Mapping[str, Any], *, times: int) -> Verdict:
    """Say what a draw that nothing contradicts is worth."""
    shown = str(value["value"])
    if draw.chain is None:
        return phase.believed(
            CHECK,
            f"the value “{shown}” of {draw.source} was mixed into its splits, as commitment {draw.sequence} had announced for"
            f" {draw.at:%Y-%m-%d %H:%M} UTC: that {draw.source} published it is believed",
        )
    told = (
        f"its splits follow from round {draw.round} of {draw.source} (value {shown[:16]}…), made {draw.at:%Y-%m-%d %H:%M:%S} UTC and"
        f" named in commitment {draw.sequence} before, by the organizers' clock"
    )
    doubts = []
    if draw.chain != QUICKNET:
        doubts.append("that nobody could choose what this chain says is believed")
    if times > 1:
        doubts.append(
            f"it is draw {times}, and that the earlier ones were not dropped for their values is believed"
        )
    return phase.believed(CHECK, "; ".join([told, *doubts])) if doubts else phase.consistent(CHECK, told)
