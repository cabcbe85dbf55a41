"""Commitments: a hash binds the secret and the hidden tasks before the first submission, in a public list that only grows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from scoring.errors import OrganizerError
from scoring.randomness import secret_commitment
from worker import __version__
from worker.challenge.secrets import public_value, split_key, value_of
from worker.challenge.setups import PhaseSetup, has_scores, open_phase, put_on_record
from worker.challenge.signing import COMMITMENT, Signer
from worker.fairness.documents import FORMAT, Malformed, read
from worker.fairness.drand import Chain
from worker.fairness.manifests import (
    AnnouncedPhase,
    AnnouncedRound,
    Commitment,
    CommitmentBody,
    Manifest,
    announce,
    commitment_of,
    covers,
)
from worker.state import Transaction

PATH = "commitment.json"
SOFTWARE = f"neuco-worker {__version__}"


def public(tx: Transaction) -> list[Commitment]:
    """Return the public entries of all commitments, oldest first."""
    return [Commitment.model_validate(entry) for entry in tx.public_commitments()]


class Draw(AnnouncedRound):
    """A named round, with the phase whose splits it decides, and the number of the commitment that names it."""

    phase: str
    sequence: int


def waiting(tx: Transaction) -> dict[str, Draw]:
    """Return the phases whose value is named but not mixed in yet; they are not scored.

    So the organizers cannot choose the splits: when they commit to tasks and secret, nobody knows the value, and when it is known, both are
    fixed.
    """
    open_ones: dict[str, Draw] = {}
    for entry in public(tx):
        for phase, draw in entry.draws.items():
            open_ones[phase] = Draw(phase=phase, sequence=entry.sequence, **dict(draw))
        open_ones = {phase: draw for phase, draw in open_ones.items() if phase not in entry.drawn}
    return open_ones


def next_round(chain: Chain, moment: datetime) -> AnnouncedRound:
    """Name the first round of drand that is made at a moment or later, which nobody can know yet."""
    return AnnouncedRound(chain=chain, round=chain.round_after(moment))


def read_commitments(content: bytes) -> list[Commitment]:
    """Return the entries of a public list of commitments.

    Raises:
        Malformed: If it is not exactly such a list.
    """
    entries = read(list[Commitment], content, PATH)
    if not entries:
        raise Malformed(f"{PATH}: it is empty")
    return entries


def commit(
    tx: Transaction,
    key: Signer,
    fresh: Iterable[PhaseSetup],
    *,
    reason: str,
    now: datetime,
    draws: Mapping[str, AnnouncedRound] | None = None,
    drawn: Mapping[str, str] | None = None,
    publish_files: str | None = None,
    receipts_every: float | None = None,
    access: str = "",
) -> dict[str, Any]:
    """Store a commitment and return its public entry; what opens it stays in the database until the reveal.

    Args:
        tx: The transaction.
        key: The challenge's key.
        fresh: Phases to commit to by their current records; for all others the earlier commitment is repeated.
        reason: Why, in public.
        now: The time, in public.
        draws: Phase to the round of drand that will be mixed into its splits.
        drawn: Phase to the signature of the round that was named for it, whose value is mixed in from now on.
        publish_files: Whose files are published of phases that are new here; without one, the earlier commitment's rule stays.
        receipts_every: Seconds between two lines of the log; only the first commitment's counts.
        access: Who knows the hidden tasks; only the first commitment's counts.
    """
    entries = tx.commitments()
    phases = _phases(tx) | {setup.record.codename: announce(setup.record) for setup in fresh}
    has_new = not entries or phases.keys() - entries[-1][0]["phases"].keys()
    sequence = len(entries) + 1
    body = CommitmentBody.model_validate(
        {
            "format": FORMAT,
            "sequence": sequence,
            "made_at": tx.attestation_time(now).replace(microsecond=0),
            "reason": reason,
            "draws": dict(draws or {}),
            "drawn": dict(drawn or {}),
            "publish_files": (has_new and publish_files) or entries[-1][0]["publish_files"],
            "receipts_every": entries[0][0]["receipts_every"] if entries else receipts_every,
            "access": entries[0][0]["access"] if entries else " ".join(access.split()),
            "phases": {name: announced for name, (announced, _) in phases.items()},
            "software": SOFTWARE,
            "key": key.public,
        }
    ).to_json()
    public = signed(body, key)
    private = {"manifests": {name: manifest.to_json() for name, (_, manifest) in phases.items()}}
    tx.add_commitment(sequence, public, private)
    return public


def signed(entry: Mapping[str, Any], key: Signer) -> dict[str, Any]:
    """Return an entry with its hash and a signature; those that it has are replaced."""
    body = {name: value for name, value in entry.items() if name not in ("commitment", "signature")}
    body["commitment"] = commitment_of(body)
    return {**body, "signature": key.sign(COMMITMENT, body)}


def check_keys(tx: Transaction, secret: bytes, fresh: Iterable[PhaseSetup]) -> None:
    """Check that phases were read with the challenge's secret and public values as they are now.

    Raises:
        OrganizerError: If one of these has changed meanwhile.
    """
    entries = tx.public_commitments()
    for setup in fresh:
        if setup.key != split_key(
            secret, setup.record.codename, public_value(entries, setup.record.codename)
        ):
            raise OrganizerError(
                "The challenge's secret or beacon changed while the command ran.",
                hint="Run the command again.",
                code="secret.edited",
            )


def begin(
    tx: Transaction,
    key: Signer,
    secret: bytes,
    read: Iterable[PhaseSetup],
    *,
    now: datetime,
    reason: str | None = None,
    draw: AnnouncedRound | None = None,
    publish_files: str | None = None,
    receipts_every: float | None = None,
    access: str = "",
) -> dict[str, Any] | None:
    """Record phases as read from their files, and commit to those without a commitment; return its public entry, if one was made.

    A phase with scores keeps its record, because only a rescore applies its changes.

    Args:
        tx: The transaction.
        key: The challenge's key.
        secret: The challenge's secret.
        read: Phases as their files are.
        now: The time.
        reason: Why, in public; with a reason, there is a commitment even if nothing has changed.
        draw: The round of drand that decides the splits of the phases that are committed to.
        publish_files: As in :func:`commit`.
        receipts_every: As in :func:`commit`.
        access: As in :func:`commit`.

    Raises:
        OrganizerError: As :func:`check_keys`.
    """
    before = _phases(tx)
    recorded = [setup for setup in read if not has_scores(tx, setup.record.codename)]
    for setup in recorded:
        put_on_record(tx, setup.record)
    fresh = [setup for setup in recorded if not covers(before.get(setup.record.codename), setup.record)]
    if not fresh and reason is None:
        return None
    check_keys(tx, secret, fresh)
    return commit(
        tx,
        key,
        fresh,
        reason=reason or (_reason(fresh, before) if before else "the challenge begins"),
        now=now,
        draws={} if draw is None else {setup.record.codename: draw for setup in fresh},
        publish_files=publish_files,
        receipts_every=receipts_every,
        access=access,
    )


def mix_in(
    tx: Transaction,
    key: Signer,
    secret: bytes,
    phases: Collection[str],
    signature: str,
    *,
    reason: str,
    now: datetime,
) -> None:
    """Mix the value of a round into the splits of phases, record these phases again, and commit to them.

    Args:
        tx: The transaction.
        key: The challenge's key.
        secret: The challenge's secret.
        phases: The phases that wait for the round.
        signature: The round's signature, whose hash is the value.
        reason: Why, in public.
        now: The time.

    Raises:
        OrganizerError: If something was scored in such a phase already, or the secret is not the one that was committed to before the value
            was known.
    """
    setups = []
    for codename in phases:
        if has_scores(tx, codename):
            raise OrganizerError(
                f"Submissions were already scored in phase {codename}. A public value would change its splits.",
                hint="Do nothing. The splits of this phase stay as they are.",
                code="beacon.too_late",
            )
        record = open_phase(tx, codename, secret).record
        splits = split_key(secret, codename, value_of(signature))
        protocol = replace(record.protocol, secret_commitment=secret_commitment(splits))
        setup = PhaseSetup(record=replace(record, protocol=protocol), key=splits)
        put_on_record(tx, setup.record)
        setups.append(setup)
    commit(tx, key, setups, reason=reason, now=now, drawn=dict.fromkeys(phases, signature))


def _phases(tx: Transaction) -> dict[str, tuple[AnnouncedPhase, Manifest]]:
    """Return what the last commitment announces and hides of each phase."""
    return {
        name: (
            AnnouncedPhase.model_validate(public["phases"][name]),
            Manifest.model_validate(manifest),
        )
        for public, private in tx.commitments()[-1:]
        for name, manifest in private["manifests"].items()
    }


def _reason(fresh: Iterable[PhaseSetup], before: Mapping[str, Any]) -> str:
    names = [setup.record.codename for setup in fresh]
    reasons = [f"phase {name} was added" for name in names if name not in before]
    reasons += [
        f"phase {name} was changed before anything was scored in it" for name in names if name in before
    ]
    return "; ".join(reasons)


def commitment_file(tx: Transaction) -> bytes | None:
    """Write the public file: the list of entries."""
    entries = tx.commitments()
    if not entries:
        return None
    return (json.dumps([public for public, _ in entries], indent=1, ensure_ascii=False) + "\n").encode()
