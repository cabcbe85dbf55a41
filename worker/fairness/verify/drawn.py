"""Check of the public value that decides a phase's splits: named before it existed, drawn once, and everything else fixed by then.

Organizers who can still change the secret or the tasks when the value is known can try many, as if there were no value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from worker.fairness import draws
from worker.fairness.drand import QUICKNET, Chain, is_signed, value_of
from worker.fairness.draws import Draw
from worker.fairness.verify.promises import Promise
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import Verdict

CHECK = "beacon"


@dataclass(frozen=True, kw_only=True)
class MixedValue:
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
    values: list[MixedValue] = []
    announced: tuple[Draw, Promise] | None = None
    missed = 0
    for promise in phase.promises:
        if (draw := draws.named(promise.public, phase.name)) is not None:
            missed += announced is not None and announced[0].at <= promise.made_at
            announced = (draw, promise)
        if (value := draws.drawn(promise.public, phase.name)) is not None:
            if announced is None:
                return phase.contradicted(
                    CHECK, "a value was mixed into its splits that no commitment had announced"
                )
            values.append(MixedValue(draw=announced[0], naming=announced[1], mixing=promise, value=value))
            announced = None
    if announced is not None:
        return phase.contradicted(
            CHECK,
            f"the value that commitment {announced[0].sequence} announced was never mixed into its splits",
        )
    if not values:
        return phase.believed(
            CHECK,
            "no public random value was mixed into its splits, so the organizers could have tried many and chosen some;"
            " that they did not is taken on trust",
        )
    for mixed in values:
        if (lie := _lie(phase, mixed)) is not None:
            return phase.contradicted(CHECK, lie)
    return _judged(phase, values[-1], times=len(values) + missed)


def _lie(phase: RevealedPhase, mixed: MixedValue) -> str | None:
    """Return what contradicts a draw, None if nothing does."""
    draw, number = mixed.draw, mixed.mixing.sequence
    if mixed.naming.made_at >= draw.at:
        return f"commitment {draw.sequence} announced a value of {draw.source} that was already known"
    if draw.chain is not None and draw.round is not None:
        wrong = _no_round(draw, draw.chain, draw.round, mixed.value)
        if wrong is not None:
            return wrong
    if mixed.mixing.made_at < draw.at.replace(microsecond=0):  # commitments have whole seconds
        return f"commitment {number} mixed in a value of {draw.source} that did not exist yet"
    before = [promise for promise in phase.promises if promise.sequence < number and promise.manifest]
    if before and (changed := _changes(phase, before[-1], mixed.mixing)):
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


def _judged(phase: RevealedPhase, mixed: MixedValue, *, times: int) -> Verdict:
    """Return the verdict on a draw that nothing contradicts."""
    draw, value = mixed.draw, mixed.value["value"]
    doubts = []
    if draw.chain is None:
        sentence = (
            f"the value “{value}” of {draw.source} was mixed into its splits, as commitment {draw.sequence} had announced for"
            f" {draw.at:%Y-%m-%d %H:%M} UTC"
        )
        doubts.append(f"that {draw.source} published this value is taken on trust")
    else:
        sentence = (
            f"its splits follow from round {draw.round} of {draw.source} (value {value[:16]}…), made at {draw.at:%Y-%m-%d %H:%M:%S}"
            f" UTC and announced before that, by the organizers' clock, in commitment {draw.sequence}"
        )
        if draw.chain != QUICKNET:
            doubts.append("that nobody could choose the values of this chain is taken on trust")
    if times > 1:
        doubts.append(
            f"this is draw number {times}; that the earlier ones were not dropped because of their values is taken on"
            " trust"
        )
    about = [promise for promise in phase.promises if promise.manifest is not None]
    doubts += [
        f"its {changed} changed in commitment {later.sequence}, when the value was known, so these splits could"
        " have been chosen; that they were not is taken on trust"
        for earlier, later in pairwise(about)
        if later.made_at >= draw.at and (changed := _changes(phase, earlier, later))
    ]
    if doubts:
        return phase.believed(CHECK, "; ".join([sentence, *doubts]))
    return phase.consistent(CHECK, sentence)


def _changes(phase: RevealedPhase, earlier: Promise, later: Promise) -> str:
    """Name what a commitment changes from an earlier one about the same phase."""
    if earlier.manifest is None or later.manifest is None:
        return ""
    changed = {
        "secret": earlier.is_opened_by(phase.key) != later.is_opened_by(phase.key),
        "protocol": earlier.manifest.protocol.announced != later.manifest.protocol.announced,
        "tasks": earlier.manifest.versions != later.manifest.versions,
    }
    return " and ".join(name for name, differs in changed.items() if differs)
