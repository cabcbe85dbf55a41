"""The commitment: one hash that binds secret and hidden tasks before anybody submits.

It covers 32 random bytes and, per phase, the hash of a manifest under random bytes of its own. So it shows neither the number of tasks nor
their names, binds all of them, and one phase can be opened without another.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from importlib.metadata import version
from typing import Any

from scoring.errors import InfrastructureError, OrganizerError
from scoring.tasks import load_tasks
from worker.challenge import PhaseSetup, is_overtaken, split_key, tasks_edited
from worker.configuration import Configuration
from worker.fairness.canonical import NONCE_BYTES, canonical, digest, labels_hash
from worker.secrets import read_challenge_secret
from worker.state import Transaction

FORMAT = 1
PATH = "commitment.json"
UNKNOWN = "leaderboard.commitment_unknown"


def phase_manifest(configuration: Configuration, setup: PhaseSetup) -> dict[str, Any]:
    """Describe one phase completely, with fresh random salts for its labels."""
    tasks = []
    for task in load_tasks(configuration.path(setup.settings.tasks), setup.ids):
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
        "phase": setup.codename,
        "nonce": secrets.token_hex(NONCE_BYTES),
        "protocol": asdict(setup.protocol),
        "protocol_hash": setup.protocol.hash,
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
    configuration: Configuration,
    phases: Mapping[str, PhaseSetup],
    *,
    reason: str,
    now: datetime,
    beacon: str | None = None,
    kept: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Make a commitment durable and return its public entry; what opens it stays in the database until the reveal.

    Args:
        tx: Where it is kept.
        configuration: The checked configuration.
        phases: The phases that are committed to as their files are now.
        reason: Why, in public.
        now: The time, in public.
        beacon: A public value that is mixed into the splits from now on.
        kept: Manifests of further phases, which stay as they were committed to before.

    Raises:
        OrganizerError: If label files are no longer those that the phases were read from, or the phases were read without the beacon that
            was mixed in meanwhile.
    """
    secret = read_challenge_secret(configuration.path(configuration.challenge.secret))
    entries = tx.commitments()
    mixed_in = beacon or tx.beacon()
    manifests = dict(kept or {})
    for name, setup in phases.items():
        if setup.key != split_key(secret, name, mixed_in):
            raise OrganizerError(
                "The challenge's secret or beacon changed in this very moment.",
                cure="Run it again.",
                code="secret.edited",
            )
        manifests[name] = phase_manifest(configuration, setup)
        if not covers(manifests[name], setup):  # the receipts would be of tasks that nobody committed to
            raise tasks_edited(name)
    opened = opening(secret, manifests)
    sequence = len(entries) + 1
    public = {
        "format": FORMAT,
        "sequence": sequence,
        "made_at": tx.promise_time(now).isoformat(timespec="seconds"),
        "reason": reason,
        "commitment": commitment_of(opened),
        "beacon": beacon,
        "phases": {name: announced_protocol(manifest["protocol"]) for name, manifest in manifests.items()},
        "software": f"neuco-worker {version('neuco-worker')}",
    }
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


def commit_again(
    tx: Transaction,
    configuration: Configuration,
    phases: Mapping[str, PhaseSetup],
    *,
    reason: str,
    now: datetime,
) -> dict[str, Any]:
    """Commit to secret and tasks once more.

    A phase that is as it was, or whose files are not what its scores stand on, stays as it was committed to. A running worker follows what
    nothing was scored on yet.
    """
    entries = tx.commitments()
    kept = dict(entries[-1][1]["manifests"]) if entries else {}
    fresh = {
        name: setup
        for name, setup in phases.items()
        if name not in kept or not (covers(kept[name], setup) or is_overtaken(tx, setup))
    }
    _record_unscored(tx, fresh)
    kept = {name: manifest for name, manifest in kept.items() if name not in fresh}
    return commit(tx, configuration, fresh, reason=reason, now=now, kept=kept)


def renew(
    tx: Transaction,
    configuration: Configuration,
    setup: PhaseSetup,
    *,
    reason: str,
    now: datetime,
) -> None:
    """Commit to what a phase stands on now; all others stay as they were committed to, whatever their files are at the moment."""
    entries = tx.commitments()
    kept = dict(entries[-1][1]["manifests"]) if entries else {}
    kept.pop(setup.codename, None)
    commit(tx, configuration, {setup.codename: setup}, reason=reason, now=now, kept=kept)


def ensure(
    tx: Transaction, configuration: Configuration, phases: Mapping[str, PhaseSetup], *, now: datetime
) -> None:
    """Commit to what nothing was scored on yet: everything at the first start, later a phase that was added or prepared anew.

    A phase that has scores is left alone: a change of its tasks is taken up, and committed to, by a rescore.
    """
    entries = tx.commitments()
    if not entries:
        commit(tx, configuration, phases, reason="the challenge begins", now=now)
        return
    manifests = entries[-1][1]["manifests"]
    fresh = {
        name: setup
        for name, setup in phases.items()
        if not covers(manifests.get(name), setup) and not tx.has_cells(name)
    }
    if fresh:
        changed = [name for name in fresh if name in manifests]
        added = [name for name in fresh if name not in manifests]
        reasons = [f"phase {name} was added" for name in added]
        reasons += [f"phase {name} was changed before anything was scored in it" for name in changed]
        kept = {name: manifest for name, manifest in manifests.items() if name not in fresh}
        commit(tx, configuration, fresh, reason="; ".join(reasons), now=now, kept=kept)


def begin(
    tx: Transaction, configuration: Configuration, phases: Mapping[str, PhaseSetup], *, now: datetime
) -> None:
    """Commit as :func:`ensure`, and let what nothing was scored on yet stand on the files as they were read."""
    ensure(tx, configuration, phases, now=now)
    _record_unscored(tx, phases)


def _record_unscored(tx: Transaction, phases: Mapping[str, PhaseSetup]) -> None:
    for name, setup in phases.items():
        if tx.phase_record(name) is None or not tx.has_cells(name):
            tx.record_phase(name, protocol_hash=setup.protocol.hash, tasks=setup.tasks)


def covers(manifest: Mapping[str, Any] | None, setup: PhaseSetup) -> bool:
    """Tell whether a manifest is of a phase as its files are now."""
    return (
        manifest is not None
        and manifest["protocol_hash"] == setup.protocol.hash
        and {task["identifier"]: task["version"] for task in manifest["tasks"]} == dict(setup.tasks)
    )


def committed_epsilon(manifests: Iterable[Mapping[str, Any] | None], protocol_hash: str) -> float | None:
    """Return the epsilon of the protocol with a hash, from the manifest that commits to it; None if none does.

    Boards and answers keep the epsilon of the protocol that their scores were made by, whatever came after.
    """
    for manifest in manifests:
        if manifest is not None and manifest["protocol_hash"] == protocol_hash:
            return float(manifest["protocol"]["recipe"]["epsilon"])
    return None


def check_growth(public: bytes | None, ours: bytes | None) -> None:
    """Check that nothing disappears from the public list; it must only ever grow.

    Raises:
        InfrastructureError: If the public list has commitments that we do not know.
    """
    try:
        known = {entry["commitment"] for entry in json.loads(ours or b"[]")}
        lost = [
            entry["sequence"] for entry in json.loads(public or b"[]") if entry["commitment"] not in known
        ]
    except (ValueError, LookupError, TypeError):
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
