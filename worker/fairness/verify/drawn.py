"""Check of the public value that decides a phase's splits: named before it existed, drawn once, and everything else fixed by then.

Organizers who can still change the secret or the tasks when the value is known can try many, as if there were no value.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from worker.fairness.drand import QUICKNET, Chain, is_signed, value_of
from worker.fairness.manifests import AnnouncedValue, Commitment, MixedValue
from worker.fairness.verify.revealed import Promise, RevealedPhase
from worker.fairness.verify.verdict import Fault, Verdict, believed, consistent, must


def drawn(phase: RevealedPhase) -> Verdict:
    """Report what decided the splits of a phase, and whether anybody could have chosen it."""
    name, missed = phase.name, 0
    naming: Commitment | None = None
    values: list[
        tuple[Commitment, Commitment]
    ] = []  # the one that announces a value, and the one that mixes it in
    for entry in phase.repository.commitments:
        if name in entry.draws:
            missed += naming is not None and naming.draws[name].at <= entry.made_at
            naming = entry
        if name in entry.drawn:
            if naming is None:
                raise Fault("a value was mixed into its splits that no commitment had announced")
            values.append((naming, entry))
            naming = None
    must(
        naming is None,
        f"the value that commitment {naming and naming.sequence} announced was never mixed into its splits",
    )
    if not values:
        return believed(
            "no public random value was mixed into its splits, so the organizers could have tried many and chosen some; that they did"
            " not is taken on trust"
        )
    for announcing, mixing in values:
        _check(phase, announcing, mixing)
    return _judged(phase, *values[-1], times=len(values) + missed)


def _check(phase: RevealedPhase, naming: Commitment, mixing: Commitment) -> None:
    """Check that a value was named before it existed, is the one that was named, and that nothing else changed with it."""
    draw, number = naming.draws[phase.name], mixing.sequence
    must(
        naming.made_at < draw.at,
        f"commitment {naming.sequence} announced a value of {draw.source} that was already known",
    )
    if draw.chain is not None and draw.round is not None:
        _check_round(draw, naming.sequence, draw.chain, draw.round, mixing.drawn[phase.name])
    must(
        mixing.made_at >= draw.at.replace(microsecond=0),  # commitments have whole seconds
        f"commitment {number} mixed in a value of {draw.source} that did not exist yet",
    )
    before = [promise for promise in phase.promises if promise.public.sequence < number]
    now = [promise for promise in phase.promises if promise.public.sequence == number]
    changed = _changes(phase, before[-1], now[0]) if before and now else ""
    must(
        not changed, f"its {changed} changed in commitment {number}, together with the value of {draw.source}"
    )


def _check_round(draw: AnnouncedValue, named_in: int, chain: Chain, number: int, value: MixedValue) -> None:
    """Check that a value is the round of drand that was named."""
    must(
        chain.made_at(number) == draw.at,
        f"round {number} of {draw.source} was not made at the time that commitment {named_in} gives",
    )
    must(
        draw.source != QUICKNET.name or chain == QUICKNET,
        f"commitment {named_in} names {draw.source}, but gives the key of another chain",
    )
    must(
        value.round == number,
        f"round {value.round} was mixed into its splits, but round {number} had been announced",
    )
    signature = value.signature or ""
    must(
        is_signed(chain, number, signature) and value.value == value_of(signature),
        f"the value that was mixed into its splits is not the one of round {number} of {draw.source}",
    )


def _judged(phase: RevealedPhase, naming: Commitment, mixing: Commitment, *, times: int) -> Verdict:
    """Return the verdict on a draw that nothing contradicts."""
    draw, value = naming.draws[phase.name], mixing.drawn[phase.name].value
    doubts = []
    if draw.chain is None:
        sentence = (
            f"the value “{value}” of {draw.source} was mixed into its splits, as commitment {naming.sequence} had announced for"
            f" {draw.at:%Y-%m-%d %H:%M} UTC"
        )
        doubts.append(f"that {draw.source} published this value is taken on trust")
    else:
        sentence = (
            f"its splits follow from round {draw.round} of {draw.source} (value {value[:16]}…), made at {draw.at:%Y-%m-%d %H:%M:%S}"
            f" UTC and announced before that, by the organizers' clock, in commitment {naming.sequence}"
        )
        if draw.chain != QUICKNET:
            doubts.append("that nobody could choose the values of this chain is taken on trust")
    if times > 1:
        doubts.append(
            f"this is draw number {times}; that the earlier ones were not dropped because of their values is taken on"
            " trust"
        )
    doubts += [
        f"its {changed} changed in commitment {later.public.sequence}, when the value was known, so these splits could"
        " have been chosen; that they were not is taken on trust"
        for earlier, later in pairwise(phase.promises)
        if later.public.made_at >= draw.at and (changed := _changes(phase, earlier, later))
    ]
    return believed("; ".join([sentence, *doubts])) if doubts else consistent(sentence)


def _changes(phase: RevealedPhase, earlier: Promise, later: Promise) -> str:
    """Name what a commitment changes from an earlier one about the same phase."""
    before, after = (replace(promise.protocol, secret_commitment="") for promise in (earlier, later))
    changed = {
        "secret": earlier.is_opened_by(phase.key) != later.is_opened_by(phase.key),
        "protocol": before != after,
        "tasks": earlier.manifest.versions != later.manifest.versions,
    }
    return " and ".join(name for name, differs in changed.items() if differs)
