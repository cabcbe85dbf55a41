"""The commitment: one hash that binds secret and hidden tasks before anybody submits.

It covers 32 random bytes and, per phase, the hash of a manifest under random bytes of its own. So it shows neither the number of tasks nor
their names, binds all of them, and one phase can be opened without another.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from importlib.metadata import version
from typing import Any

from scoring.errors import InfrastructureError, OrganizerError
from scoring.randomness import secret_commitment
from worker.challenge.canonical import canonical
from worker.challenge.keys import public_value, split_key
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import PhaseSetup, has_scores, open_phase, put_on_record
from worker.fairness.canonical import NONCE_BYTES, digest, labels_hash
from worker.fairness.draws import alert_key
from worker.fairness.signing import is_signed, renew, signer
from worker.state import Transaction

FORMAT = 2  # 1 had no key and no signature
COMMITMENT, SUCCESSION = "commitment", "succession"  # what is signed
PATH = "commitment.json"
UNKNOWN = "leaderboard.commitment_unknown"


def phase_manifest(record: PhaseRecord) -> dict[str, Any]:
    """Describe one phase completely, with fresh random salts for its labels."""
    tasks = []
    for task in record.tasks:
        salt = secrets.token_bytes(NONCE_BYTES)
        tasks.append(
            {
                "identifier": task.name,
                "type": task.type.value,
                "version": task.version,
                "salt": salt.hex(),
                "labels": labels_hash(task, salt),
            }
        )
    return {
        "phase": record.codename,
        "nonce": secrets.token_hex(NONCE_BYTES),
        "protocol": asdict(record.protocol),
        "protocol_hash": record.protocol.hash,
        "tasks": tasks,
    }


def phase_commitment(manifest: Mapping[str, Any]) -> str:
    """Commit to one phase's manifest under its own nonce."""
    body = {key: value for key, value in manifest.items() if key != "nonce"}
    return digest("phase", bytes.fromhex(manifest["nonce"]), canonical(body))


def opening(secret: bytes, manifests: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what opens a commitment: nonce, the secret's hash, one hash per phase."""
    return {
        "nonce": secrets.token_hex(NONCE_BYTES),
        "secret": digest("secret", secret),
        "phases": {name: phase_commitment(manifest) for name, manifest in manifests.items()},
    }


def commitment_of(opened: Mapping[str, Any]) -> str:
    """Return the one public hash."""
    body = {"secret": opened["secret"], "phases": opened["phases"]}
    return digest("commitment", bytes.fromhex(opened["nonce"]), canonical(body))


def announced_protocol(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Return what everybody may know of a phase's protocol from the start."""
    return {key: value for key, value in protocol.items() if key != "secret_commitment"}


def commit(
    tx: Transaction,
    secret: bytes,
    fresh: Iterable[PhaseSetup],
    *,
    reason: str,
    now: datetime,
    beacon: str | None = None,
    draws: Mapping[str, Mapping[str, Any]] | None = None,
    drawn: Mapping[str, Mapping[str, Any]] | None = None,
    new_key: bool = False,
    publish_files: str | None = None,
) -> dict[str, Any]:
    """Make a commitment durable and return its public entry; what opens it stays in the database until the reveal.

    Args:
        tx: Where it is kept.
        secret: The challenge's.
        fresh: Phases to commit to as they are on record now; all others stay as they were committed to.
        reason: Why, in public.
        now: The time, in public.
        beacon: A public value that is mixed into the splits of all phases from now on.
        draws: Phase to the value that will be mixed into its splits, see :func:`worker.fairness.draws.name`.
        drawn: Phase to the value that was named for it and is mixed in from now on.
        new_key: Whether another key signs from now on. The one before signs it, as the last thing that it ever does.
        publish_files: Whose files are published of the phases that are new in it; None for what the commitment before says.

    Raises:
        OrganizerError: If the phases were read without the beacon that was mixed in meanwhile, or under another secret.
    """
    entries = tx.commitments()
    values = [*(entry for entry, _ in entries), {"beacon": beacon, "drawn": drawn}]
    manifests = _manifests(tx)
    for setup in fresh:
        if setup.key != split_key(secret, setup.codename, public_value(values, setup.codename)):
            raise OrganizerError(
                "The challenge's secret or beacon changed in this very moment.",
                cure="Run it again.",
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
        "beacon": beacon,
        **({"draws": dict(draws)} if draws else {}),
        **({"drawn": dict(drawn)} if drawn else {}),
        "publish_files": publish_files or (entries[-1][0].get("publish_files") if entries else None),
        "phases": {name: announced_protocol(manifest["protocol"]) for name, manifest in manifests.items()},
        "software": f"neuco-worker {version('neuco-worker')}",
    }
    before = signer(tx)
    key = renew(tx) if before is None or new_key else before
    public["key"] = key.public
    if before is not None and key is not before:
        public["succession"] = before.sign(SUCCESSION, key.public)
    public["signature"] = key.sign(COMMITMENT, public)
    for codename in {**(draws or {}), **(drawn or {})}:
        tx.resolve_alert(alert_key(codename), now=now)  # another value is awaited now, or none
    tx.add_commitment(sequence, json.dumps(public), json.dumps({"opening": opened, "manifests": manifests}))
    for phase, files in tx.reveals().items():
        tx.add_reveal(phase, _opened_too(files, phase, sequence, opened, manifests.get(phase)))
    return public


def _opened_too(
    files: Mapping[str, str],
    phase: str,
    sequence: int,
    opened: Mapping[str, Any],
    manifest: Mapping[str, Any] | None,
) -> dict[str, str]:
    """Let what was revealed of a phase open a later commitment as well, if that says the same of the phase.

    Else whoever checks would find a commitment that nothing opens, because another phase was changed. A phase that was itself changed
    after its reveal must be revealed again.
    """
    document = json.loads(files[reveal_path(phase)])
    if not document["commitments"] or manifest != document["commitments"][-1]["manifest"]:
        return dict(files)
    document["commitments"].append({"sequence": sequence, "opening": opened, "manifest": manifest})
    return {**files, reveal_path(phase): reveal_text(document)}


def reveal_path(phase: str) -> str:
    """Return where the document of a revealed phase is published."""
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
    """Record phases as their files were read, and commit to what nobody had committed to; ``draw`` is what decides their splits."""
    before = _manifests(tx)
    fresh, begun = _record(tx, read, now=now), bool(tx.commitments())
    if fresh:
        reason = _reason(fresh, before) if begun else "the challenge begins"
        draws = _draws(tx, fresh, draw, now)
        commit(tx, secret, fresh, reason=reason, now=now, draws=draws, publish_files=publish_files)
    elif begun and signer(tx) is None:
        reason = "what is published is signed from now on"
        commit(tx, secret, (), reason=reason, now=now, publish_files=publish_files)


def commit_again(
    tx: Transaction,
    secret: bytes,
    read: Iterable[PhaseSetup],
    *,
    reason: str,
    now: datetime,
    draw: Mapping[str, Any] | None = None,
    new_key: bool = False,
    publish_files: str | None = None,
) -> dict[str, Any]:
    """Record phases as their files were read, and commit once more, even if there is nothing new to commit to."""
    fresh = _record(tx, read, now=now)
    draws = _draws(tx, fresh, draw, now)
    return commit(
        tx, secret, fresh, reason=reason, now=now, draws=draws, new_key=new_key, publish_files=publish_files
    )


def _draws(
    tx: Transaction, fresh: Sequence[PhaseSetup], draw: Mapping[str, Any] | None, now: datetime
) -> dict[str, Mapping[str, Any]]:
    """Name a value for each phase in which nothing was scored: one that an earlier version began keeps its splits.

    Raises:
        OrganizerError: If everybody may know the value already.
    """
    fresh = [setup for setup in fresh if not has_scores(tx, setup.codename)]
    if draw is None or not fresh:
        return {}
    if datetime.fromisoformat(draw["at"]) <= now:
        raise OrganizerError(
            f"The value of {draw['source']} that fairness.beacon names was published on {draw['at']}.",
            cure="Name one that will be published later: a known value could have been chosen.",
            code="beacon.past",
        )
    return {setup.codename: draw for setup in fresh}


def mix_in(
    tx: Transaction,
    secret: bytes,
    drawn: Mapping[str, Mapping[str, Any]],
    *,
    reason: str,
    now: datetime,
) -> dict[str, Any]:
    """Mix the values that were drawn into the splits of phases, put these on record anew, and commit to them.

    Args:
        tx: Where they are kept.
        secret: The challenge's.
        drawn: Phase to value, with drand's round and signature if it has them.
        reason: Why, in public.
        now: The time.

    Raises:
        OrganizerError: If something was scored in such a phase already, or the secret is not the one that was bound before the value was
            known.
    """
    setups = []
    for codename, found in drawn.items():
        if has_scores(tx, codename):
            raise OrganizerError(
                f"Something was scored in phase {codename} already: a public value would change its splits.",
                cure="Nothing has to be done; its splits stay as they are.",
                code="beacon.too_late",
            )
        record = open_phase(tx, codename, secret).record
        key = split_key(secret, codename, str(found["value"]))
        protocol = replace(record.protocol, secret_commitment=secret_commitment(key))
        setup = PhaseSetup(record=replace(record, protocol=protocol), key=key)
        put_on_record(tx, setup.record, files=tx.record_files(record.hash), now=now)
        setups.append(setup)
    return commit(tx, secret, setups, reason=reason, now=now, drawn=drawn)


def name_again(
    tx: Transaction,
    secret: bytes,
    phases: Iterable[str],
    draw: Mapping[str, Any],
    *,
    reason: str,
    now: datetime,
) -> dict[str, Any]:
    """Name another, later value for phases in which nothing was scored."""
    return commit(tx, secret, (), reason=reason, now=now, draws=dict.fromkeys(phases, draw))


def _record(tx: Transaction, read: Iterable[PhaseSetup], *, now: datetime) -> list[PhaseSetup]:
    """Put phases on record and return those that nobody has committed to as they are.

    A phase with scores stays as it is on record: its changes are taken up by a rescore. If it has no record, because an earlier version
    began it, it gets one from files that are those that its scores were made from.
    """
    manifests = _manifests(tx)
    recorded = [setup for setup in read if _may_record(tx, setup)]
    for setup in recorded:
        put_on_record(tx, setup.record, files=setup.files, now=now)
    return [setup for setup in recorded if not covers(manifests.get(setup.codename), setup.record)]


def _manifests(tx: Transaction) -> dict[str, dict[str, Any]]:
    """Return the manifests that the last commitment covers: phase to manifest."""
    entries = tx.commitments()
    return dict(entries[-1][1]["manifests"]) if entries else {}


def _may_record(tx: Transaction, setup: PhaseSetup) -> bool:
    row = tx.phase_record(setup.codename)
    if row is None or not has_scores(tx, setup.codename):
        return True
    return row.record is None and setup.record.scores_as(row.protocol_hash, row.tasks)


def _reason(fresh: Iterable[PhaseSetup], before: Mapping[str, Any]) -> str:
    names = [setup.codename for setup in fresh]
    reasons = [f"phase {name} was added" for name in names if name not in before]
    reasons += [
        f"phase {name} was changed before anything was scored in it" for name in names if name in before
    ]
    return "; ".join(reasons)


def covers(manifest: Mapping[str, Any] | None, record: PhaseRecord) -> bool:
    """Tell whether a manifest is of a phase as it is on record."""
    if manifest is None:
        return False
    versions = {task["identifier"]: task["version"] for task in manifest["tasks"]}
    return record.scores_as(manifest["protocol_hash"], versions)


def committed_epsilon(manifests: Iterable[Mapping[str, Any] | None], protocol_hash: str) -> float | None:
    """Return the epsilon of the protocol with a hash, from the manifest that commits to it; None if none does."""
    for manifest in manifests:
        if manifest is not None and manifest["protocol_hash"] == protocol_hash:
            return float(manifest["protocol"]["recipe"]["epsilon"])
    return None


def keys_of(public: bytes | None) -> tuple[str, ...]:
    """Return the keys that a public list of commitments names, see :func:`keys_in`; what is no such list names none."""
    try:
        return keys_in(json.loads(public or b"[]"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ()


def keys_in(entries: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the keys that public commitments name, in their order.

    The first commitment with a key says which is the challenge's, and every other key is signed with the one before it: without that,
    whoever may push could name a key. A key that was replaced signs nothing any more, neither a commitment nor another key.
    """
    known: list[str] = []
    for entry in entries:
        key = key_of(entry, known)
        if key is not None and key not in known:
            known.append(key)
    return tuple(known)


def key_of(entry: Mapping[str, Any], known: Sequence[str]) -> str | None:
    """Return the key of an entry that is signed with the newest of the known keys, or with one that this key has signed; else None."""
    key = entry.get("key")
    body = {name: value for name, value in entry.items() if name != "signature"}
    if not isinstance(key, str) or not is_signed(key, COMMITMENT, body, entry.get("signature")):
        return None
    if not known or key == known[-1]:
        return key
    is_new = key not in known and is_signed(known[-1], SUCCESSION, key, entry.get("succession"))
    return key if is_new else None


def check_growth(public: bytes | None, ours: bytes | None, *, settled: bool = False) -> None:
    """Check that nothing of the challenge disappears from the public list; it must only ever grow.

    Args:
        public: The list in the repository.
        ours: The list in the state.
        settled: Whether the challenge has pushed there before and its state knows everything. What its keys have not signed is then
            somebody else's, and does not stay.

    Raises:
        InfrastructureError: If the public list has commitments that we do not know.
    """
    keys = keys_of(ours) if settled else ()
    try:
        known = {entry["commitment"] for entry in json.loads(ours or b"[]")}
        unknown = [entry for entry in json.loads(public or b"[]") if entry["commitment"] not in known]
        lost = [entry["sequence"] for entry in unknown if not keys or key_of(entry, keys) is not None]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return  # what is no list of commitments is not believed
    if lost:
        raise InfrastructureError(
            f"The repository has a commitment that this state does not know (number {lost[0]}).",
            cure="If the repository was used before: take an empty one. If a backup was restored: restore one that is younger than this"
            " commitment; without one, take the entry out of commitment.json by hand and say in public why, for no reveal can open it.",
            code=UNKNOWN,
        )


def commitment_file(tx: Transaction) -> bytes | None:
    """Write the public file: the list of entries, which only ever grows."""
    entries = tx.commitments()
    if not entries:
        return None
    return (json.dumps([public for public, _ in entries], indent=1, ensure_ascii=False) + "\n").encode()
