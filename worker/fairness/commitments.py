"""Commitments: a hash binds the secret and the hidden tasks before the first submission, in a public list that only grows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from typing import Any

from scoring.errors import InfrastructureError, OrganizerError
from scoring.randomness import secret_commitment
from worker.challenge.keys import public_value, split_key
from worker.challenge.setups import PhaseSetup, has_scores, open_phase, put_on_record
from worker.fairness.draws import alert_key
from worker.fairness.manifests import announced_protocol, commitment_of, covers, opening, phase_manifest
from worker.fairness.published_format import FORMAT
from worker.fairness.signing import renew, signer
from worker.fairness.succession import COMMITMENT, SUCCESSION, key_of, keys_of
from worker.state import Transaction

PATH = "commitment.json"
UNKNOWN = "leaderboard.commitment_unknown"


def commit(
    tx: Transaction,
    secret: bytes,
    fresh: Iterable[PhaseSetup],
    *,
    reason: str,
    now: datetime,
    draws: Mapping[str, Mapping[str, Any]] | None = None,
    drawn: Mapping[str, Mapping[str, Any]] | None = None,
    new_key: bool = False,
    publish_files: str | None = None,
) -> dict[str, Any]:
    """Store a commitment and return its public entry; what opens it stays in the database until the reveal.

    Args:
        tx: The transaction.
        secret: The challenge's secret.
        fresh: Phases to commit to by their current records; for all others the earlier commitment is repeated.
        reason: Why, in public.
        now: The time, in public.
        draws: Phase to the value that will be mixed into its splits, see :func:`worker.fairness.draws.name`.
        drawn: Phase to the value that was named for it and is mixed in from now on.
        new_key: Whether a new key signs from now on. The old key signs it as its last signature.
        publish_files: Whose files are published, for phases that are new here; None to keep the earlier commitment's rule.

    Raises:
        OrganizerError: If the phases were read without a beacon that was mixed in meanwhile, or with another secret.
    """
    entries = tx.commitments()
    values = [*(entry for entry, _ in entries), {"drawn": drawn or {}}]
    manifests = _manifests(tx)
    for setup in fresh:
        if setup.key != split_key(secret, setup.codename, public_value(values, setup.codename)):
            raise OrganizerError(
                "The challenge's secret or beacon changed while the command ran.",
                cure="Run the command again.",
                code="secret.edited",
            )
        manifests[setup.codename] = phase_manifest(setup.record)
    opened = opening(secret, manifests)
    sequence = len(entries) + 1
    public = {
        "format": FORMAT,
        "sequence": sequence,
        "made_at": tx.attestation_time(now).isoformat(timespec="seconds"),
        "reason": reason,
        "commitment": commitment_of(opened),
        "draws": dict(draws or {}),
        "drawn": dict(drawn or {}),
        "publish_files": publish_files or entries[-1][0]["publish_files"],
        "phases": {name: announced_protocol(manifest["protocol"]) for name, manifest in manifests.items()},
        "software": f"neuco-worker {version('neuco-worker')}",
    }
    _sign(tx, public, new_key=new_key)
    for codename in {**(draws or {}), **(drawn or {})}:
        tx.resolve_alert(alert_key(codename), now=now)  # now another value is awaited, or none
    tx.add_commitment(sequence, json.dumps(public), json.dumps({"opening": opened, "manifests": manifests}))
    for phase, files in tx.reveals().items():
        tx.add_reveal(phase, _opened_too(files, phase, sequence, opened, manifests.get(phase)))
    return public


def _sign(tx: Transaction, public: dict[str, Any], *, new_key: bool) -> None:
    """Sign an entry, if necessary with a new key that the old key signs."""
    before = signer(tx)
    key = renew(tx) if new_key else before
    public["key"] = key.public
    public["succession"] = before.sign(SUCCESSION, key.public) if new_key else None
    public["signature"] = key.sign(COMMITMENT, public)


def _opened_too(
    files: Mapping[str, str],
    phase: str,
    sequence: int,
    opened: Mapping[str, Any],
    manifest: Mapping[str, Any] | None,
) -> dict[str, str]:
    """Open a later commitment in a phase's reveal, if the commitment says the same about that phase as the reveal.

    Otherwise a verifier would find a commitment that nothing opens, only because another phase was changed. A phase that was itself changed
    after its reveal must be revealed again.
    """
    document = json.loads(files[reveal_path(phase)])
    if manifest != document["commitments"][-1]["manifest"]:
        return dict(files)
    document["commitments"].append({"sequence": sequence, "opening": opened, "manifest": manifest})
    return {**files, reveal_path(phase): reveal_text(document)}


def reveal_path(phase: str) -> str:
    """Return the path of a revealed phase's document."""
    return f"reveal/{phase}/reveal.json"


def reveal_text(document: Mapping[str, Any]) -> str:
    """Write the document of a revealed phase."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def begin(
    tx: Transaction,
    secret: bytes,
    read: Iterable[PhaseSetup],
    *,
    now: datetime,
    draw: Mapping[str, Any] | None = None,
    publish_files: str | None = None,
) -> None:
    """Record phases as read from their files, and commit to those without a commitment; ``draw`` decides their splits."""
    before = _manifests(tx)
    fresh = _record(tx, read, now=now)
    if fresh:
        reason = _reason(fresh, before) if before else "the challenge begins"
        draws = _draws(tx, fresh, draw, now)
        commit(tx, secret, fresh, reason=reason, now=now, draws=draws, publish_files=publish_files)


def commit_again(
    tx: Transaction,
    secret: bytes,
    read: Iterable[PhaseSetup],
    *,
    reason: str,
    now: datetime,
    draw: Mapping[str, Any] | None = None,
    publish_files: str | None = None,
) -> dict[str, Any]:
    """Record phases as read from their files, and make a new commitment even if nothing has changed."""
    fresh = _record(tx, read, now=now)
    draws = _draws(tx, fresh, draw, now)
    return commit(tx, secret, fresh, reason=reason, now=now, draws=draws, publish_files=publish_files)


def mix_in(
    tx: Transaction,
    secret: bytes,
    drawn: Mapping[str, Mapping[str, Any]],
    *,
    reason: str,
    now: datetime,
) -> dict[str, Any]:
    """Mix the drawn values into the splits of phases, record these phases again, and commit to them.

    Args:
        tx: The transaction.
        secret: The challenge's secret.
        drawn: Phase to value, with drand's round and signature if it has them.
        reason: Why, in public.
        now: The time.

    Raises:
        OrganizerError: If something was scored in such a phase already, or the secret is not the one that was committed to before the value
            was known.
    """
    setups = []
    for codename, found in drawn.items():
        if has_scores(tx, codename):
            raise OrganizerError(
                f"Submissions were already scored in phase {codename}. A public value would change its splits.",
                cure="Do nothing. The splits of this phase stay as they are.",
                code="beacon.too_late",
            )
        record = open_phase(tx, codename, secret).record
        key = split_key(secret, codename, str(found["value"]))
        protocol = replace(record.protocol, secret_commitment=secret_commitment(key))
        setup = PhaseSetup(record=replace(record, protocol=protocol), key=key)
        put_on_record(tx, setup.record, files=tx.record_files(record.hash), now=now)
        setups.append(setup)
    return commit(tx, secret, setups, reason=reason, now=now, drawn=drawn)


def _draws(
    tx: Transaction, fresh: Sequence[PhaseSetup], draw: Mapping[str, Any] | None, now: datetime
) -> dict[str, Mapping[str, Any]]:
    """Name a value for each phase without scores.

    Raises:
        OrganizerError: If the value may be known already.
    """
    fresh = [setup for setup in fresh if not has_scores(tx, setup.codename)]
    if draw is None or not fresh:
        return {}
    if datetime.fromisoformat(draw["at"]) <= now:
        raise OrganizerError(
            f"The value of {draw['source']} in fairness.beacon was already published, on {draw['at']}.",
            cure="Name a value that will be published in the future. With a known value, the secret could be chosen to favor a team.",
            code="beacon.past",
        )
    return {setup.codename: draw for setup in fresh}


def _record(tx: Transaction, read: Iterable[PhaseSetup], *, now: datetime) -> list[PhaseSetup]:
    """Record phases and return those whose present content no commitment covers yet.

    A phase with scores keeps its record, because only a rescore applies its changes.
    """
    manifests = _manifests(tx)
    recorded = [setup for setup in read if not has_scores(tx, setup.codename)]
    for setup in recorded:
        put_on_record(tx, setup.record, files=setup.files, now=now)
    return [setup for setup in recorded if not covers(manifests.get(setup.codename), setup.record)]


def _manifests(tx: Transaction) -> dict[str, dict[str, Any]]:
    """Return the manifests that the last commitment covers: phase to manifest."""
    entries = tx.commitments()
    return dict(entries[-1][1]["manifests"]) if entries else {}


def _reason(fresh: Iterable[PhaseSetup], before: Mapping[str, Any]) -> str:
    names = [setup.codename for setup in fresh]
    reasons = [f"phase {name} was added" for name in names if name not in before]
    reasons += [
        f"phase {name} was changed before anything was scored in it" for name in names if name in before
    ]
    return "; ".join(reasons)


def check_growth(public: bytes | None, ours: bytes | None, *, settled: bool = False) -> None:
    """Check that nothing of the challenge disappears from the public list, which may only grow.

    Args:
        public: The list in the repository.
        ours: The list in the state.
        settled: Whether the challenge has pushed there before and its state is complete. Then entries that its keys have not signed were
            added by others, and the next push removes them.

    Raises:
        InfrastructureError: If the public list has commitments that the state lacks.
    """
    keys = keys_of(ours) if settled else ()
    try:
        known = {entry["commitment"] for entry in json.loads(ours or b"[]")}
        unknown = [entry for entry in json.loads(public or b"[]") if entry["commitment"] not in known]
        lost = [entry["sequence"] for entry in unknown if not keys or key_of(entry, keys) is not None]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return  # anything but a list of commitments is ignored
    if lost:
        raise InfrastructureError(
            f"The repository contains a commitment that this state does not know (number {lost[0]}).",
            cure="If another challenge used the repository, use an empty one. If you restored a backup, restore one that is newer"
            " than this commitment. Without such a backup, remove the entry from commitment.json by hand and explain this in"
            " public, because it can never be revealed.",
            code=UNKNOWN,
        )


def commitment_file(tx: Transaction) -> bytes | None:
    """Write the public file: the list of entries."""
    entries = tx.commitments()
    if not entries:
        return None
    return (json.dumps([public for public, _ in entries], indent=1, ensure_ascii=False) + "\n").encode()
