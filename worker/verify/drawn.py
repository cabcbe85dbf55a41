"""Check of the public value that decides a phase's splits: named before it existed, drawn once, and everything else fixed by then.

Organizers who can still change the secret or the tasks when the value is known can try many, as if there were no value.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from scoring.printable import count_of
from worker.challenge.secrets import value_of
from worker.fairness.drand import QUICKNET, is_signed
from worker.fairness.manifests import Commitment
from worker.verify.revealed import Promise, RevealedPhase
from worker.verify.verdict import CheckEnded, Verdict, believed, consistent, require


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
                raise CheckEnded("a value was mixed into its splits that no commitment had announced")
            values.append((naming, entry))
            naming = None
    require(
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
    round_of = f"round {draw.round} of {draw.chain.name}"
    require(
        naming.made_at < draw.at,
        f"commitment {naming.sequence} announced {round_of}, which was already known",
    )
    require(
        draw.chain.name != QUICKNET.name or draw.chain == QUICKNET,
        f"commitment {naming.sequence} names {draw.chain.name}, but gives the key of another chain",
    )
    require(
        is_signed(draw.chain, draw.round, mixing.drawn[phase.name]),
        f"the value that was mixed into its splits is not the one of {round_of}",
    )
    require(mixing.made_at >= draw.at, f"commitment {number} mixed in {round_of}, which did not exist yet")
    pairs = pairwise(phase.promises)
    changed = next((_changes(before, now) for before, now in pairs if now.public.sequence == number), "")
    require(
        not changed, f"its {changed} changed in commitment {number}, together with the value of {round_of}"
    )


def _judged(phase: RevealedPhase, naming: Commitment, mixing: Commitment, *, times: int) -> Verdict:
    """Return the verdict on a draw that nothing contradicts."""
    draw, value = naming.draws[phase.name], value_of(mixing.drawn[phase.name])
    sentence = (
        f"its splits follow from round {draw.round} of {draw.chain.name} (value {value[:16]}…), made at {draw.at:%Y-%m-%d %H:%M:%S}"
        f" UTC and announced before that, by the organizers' clock, in commitment {naming.sequence}"
    )
    doubts = []
    if draw.chain != QUICKNET:
        doubts.append("that nobody could choose the values of this chain is taken on trust")
    if times > 1:
        doubts.append(
            f"another round had been named {count_of(times - 1, 'time')} before, as happens after an interruption or a change; that none"
            " was dropped because of its value is taken on trust"
        )
    doubts += [
        f"its {changed} changed in commitment {later.public.sequence}, when the value was known, so these splits could"
        " have been chosen; that they were not is taken on trust"
        for earlier, later in pairwise(phase.promises)
        if later.public.made_at >= draw.at and (changed := _changes(earlier, later))
    ]
    return believed("; ".join([sentence, *doubts])) if doubts else consistent(sentence)


def _changes(earlier: Promise, later: Promise) -> str:
    """Name what a commitment changes from an earlier one about the same phase."""
    before, after = (replace(promise.protocol, secret_commitment="") for promise in (earlier, later))
    changed = {
        "secret": earlier.is_opened != later.is_opened,
        "protocol": before != after,
        "tasks": earlier.manifest.versions != later.manifest.versions,
    }
    return " and ".join(name for name, differs in changed.items() if differs)
