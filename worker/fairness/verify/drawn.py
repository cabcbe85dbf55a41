"""Check of the public value that decides a phase's splits: named before it existed, drawn once, and everything else fixed by then.

Organizers who can still change the secret or the tasks when the value is known can try many, as if there were no value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from worker.fairness import draws
from worker.fairness.drand import QUICKNET, Chain, is_signed, value_of
from worker.fairness.draws import Draw
from worker.fairness.verify.opening import same_labels
from worker.fairness.verify.promises import Promise
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

CHECK = "beacon"


@dataclass(frozen=True, kw_only=True)
class Told:
    """A value that was mixed in.

    Attributes:
        draw: The value as it was named.
        naming: The commitment that named it.
        mixing: The commitment that mixed it in.
        value: What that commitment says about it.
    """

    draw: Draw
    naming: Promise
    mixing: Promise
    value: Mapping[str, Any]


def drawn(phase: RevealedPhase) -> Verdict:
    """Report what decided the splits of a phase, and whether anybody could have chosen it."""
    told: list[Told] = []
    open_one: tuple[Draw, Promise] | None = None
    missed = 0
    for promise in phase.promises:
        if (draw := draws.named(promise.public, phase.name)) is not None:
            missed += open_one is not None and open_one[0].at <= promise.made_at
            open_one = (draw, promise)
        if (value := draws.drawn(promise.public, phase.name)) is not None:
            if open_one is None:
                return phase.contradicted(
                    CHECK, "a value was mixed into its splits that no commitment had announced"
                )
            told.append(Told(draw=open_one[0], naming=open_one[1], mixing=promise, value=value))
            open_one = None
    if open_one is not None:
        return phase.contradicted(
            CHECK,
            f"the value that commitment {open_one[0].sequence} announced was never mixed into its splits",
        )
    if not told:
        return phase.believed(
            CHECK,
            "no public random value was mixed into its splits, so the organizers could have tried many and chosen some;"
            f" that they did not is taken on trust{_needed(phase)}",
        )
    for one in told:
        if (lie := _lie(phase, one)) is not None:
            return phase.contradicted(CHECK, lie)
    return _judged(phase, told[-1], times=len(told) + missed)


def _needed(phase: RevealedPhase) -> str:
    """Report how many draws it would have taken for another winner, as far as the folds of the last board show."""
    board = phase.boards[-1] if phase.boards else None
    if board is None or board.private.figures is None:
        return ""
    competing = {row.submission: row.rank for row in board.standings if row.numbered}
    if len(competing) < 2:
        return ""
    figures = board.private.figures
    p_first = min(row.p_first for row in figures.rows if competing.get(row.submission) == 1)
    return f". To put another team first, they would have needed {tries(p_first, figures.replicates)}"


def tries(p_first: float, replicates: int) -> str:
    """Report how many other draws are enough for another winner.

    Args:
        p_first: Share of the bootstrap's replicates in which the winner stays first. The folds are independent draws of splits, so
            resampling them is like drawing other splits; docs/performance.md compares it with real draws.
        replicates: Their number, which limits how rare a change can be estimated.
    """
    other, most = 1 - p_first, replicates // 2
    if other * most < 1:
        return f"more than {most:,} tries"
    number = max(2, round(1 / other))
    return f"about {round(number, 2 - len(str(number))):,} tries"


def _lie(phase: RevealedPhase, told: Told) -> str | None:
    """Return what contradicts a draw, None if nothing does."""
    draw, number = told.draw, told.mixing.sequence
    if told.naming.made_at >= draw.at:
        return f"commitment {draw.sequence} announced a value of {draw.source} that was already known"
    if draw.chain is not None and draw.round is not None:
        wrong = _no_round(draw, draw.chain, draw.round, told.value)
        if wrong is not None:
            return wrong
    if told.mixing.made_at < draw.at.replace(microsecond=0):  # commitments have whole seconds
        return f"commitment {number} mixed in a value of {draw.source} that did not exist yet"
    before = [one for one in phase.promises if one.sequence < number and one.manifest is not None]
    if changed := _changes(phase, before[-1:], told.mixing):
        return f"its {changed} changed in commitment {number}, together with the value of {draw.source}"
    return None


def _no_round(draw: Draw, chain: Chain, number: int, value: Mapping[str, Any]) -> str | None:
    """Return why a value is not the round of drand that was named, None if it is."""
    if chain.made_at(number) != draw.at:
        return (
            f"round {number} of {draw.source} was not made at the time that commitment {draw.sequence} gives"
        )
    if draw.source == QUICKNET.name and chain != QUICKNET:
        return f"commitment {draw.sequence} names {draw.source}, but gives the key of another chain"
    if value["round"] != number:
        return f"round {value['round']} was mixed into its splits, but round {number} had been announced"
    signature = value["signature"] or ""
    if not is_signed(chain, number, signature) or value["value"] != value_of(signature):
        return f"the value that was mixed into its splits is not the one of round {number} of {draw.source}"
    return None


def _judged(phase: RevealedPhase, told: Told, *, times: int) -> Verdict:
    """Return the verdict on a draw that nothing contradicts."""
    draw, shown = told.draw, told.value["value"]
    if draw.chain is None:
        said = (
            f"the value “{shown}” of {draw.source} was mixed into its splits, as commitment {draw.sequence} had announced for"
            f" {draw.at:%Y-%m-%d %H:%M} UTC"
        )
        doubts = [f"that {draw.source} published this value is taken on trust"]
    else:
        said = (
            f"its splits follow from round {draw.round} of {draw.source} (value {shown[:16]}…), made at {draw.at:%Y-%m-%d %H:%M:%S}"
            f" UTC and announced before that, by the organizers' clock, in commitment {draw.sequence}"
        )
        foreign = draw.chain != QUICKNET
        doubts = ["that nobody could choose the values of this chain is taken on trust"] if foreign else []
    if times > 1:
        doubts.append(
            f"this is draw number {times}; that the earlier ones were not dropped because of their values is taken on"
            " trust"
        )
    doubts += _changed_later(phase, draw)
    return phase.believed(CHECK, "; ".join([said, *doubts])) if doubts else phase.consistent(CHECK, said)


def _changed_later(phase: RevealedPhase, draw: Draw) -> Iterator[str]:
    """Say what a commitment changed once the value was known."""
    before: list[Promise] = []
    for promise in phase.promises:
        if promise.manifest is None:
            continue
        if promise.made_at >= draw.at and (changed := _changes(phase, before, promise)):
            yield (
                f"its {changed} changed in commitment {promise.sequence}, when the value was known, so these splits could"
                " have been chosen; that they were not is taken on trust"
            )
        before = [promise]


def _changes(phase: RevealedPhase, before: Sequence[Promise], after: Promise) -> str:
    """Name what a commitment changes from the one before it; nothing if there is none before."""
    if not before or after.manifest is None:
        return ""
    (earlier,) = before
    changed = {
        "secret": earlier.is_opened_by(phase.key) != after.is_opened_by(phase.key),
        "protocol": earlier.rules_of_scores != after.rules_of_scores,
        "tasks": not _same_tasks(phase, earlier, after),
    }
    return " and ".join(name for name, differs in changed.items() if differs)


def _same_tasks(phase: RevealedPhase, earlier: Promise, later: Promise) -> bool:
    """Return whether two commitments bind the same tasks: by their labels if these are published, otherwise by their versions."""
    if earlier.tasks.keys() != later.tasks.keys():
        return False
    published = phase.labels if phase.with_labels else {}
    for (name, kind), task in earlier.tasks.items():
        other, content = later.tasks[name, kind], published.get(task.file)
        if content is None:
            if task.version != other.version:
                return False
        elif same_labels(content, task) != same_labels(content, other):
            return False
    return True
