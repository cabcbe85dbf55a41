"""The reveal: publish, after a phase has ended, everything with which anybody can check it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from leaderboard.ranking import from_json
from scoring.errors import OrganizerError
from scoring.randomness import phase_key
from scoring.tasks import Task
from worker.challenge.files import read_secret
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import open_phase
from worker.challenge.signing import signer
from worker.fairness import disclosure, events, id_lists
from worker.fairness.disclosure import Reveal, reveal_path
from worker.fairness.documents import FORMAT, read
from worker.fairness.manifests import Manifest
from worker.fairness.receipts import close_batch
from worker.fairness.register import register, withholds
from worker.organizer.session import OrganizerSession
from worker.state import REVEALED, Transaction

FOLDER = "reveal"


def choose(
    session: OrganizerSession, named: Sequence[str] | None, *, open_too: bool
) -> tuple[list[str], list[str]]:
    """Choose the phases to reveal: the named ones, or all that are closed.

    Once a phase's tasks are public, anyone who may still submit to it can train on them, and that cannot be undone.

    Args:
        session: The challenge.
        named: Phases that the organizer named, if any.
        open_too: Whether phases that are not closed may be revealed; one that still withholds its values never may.

    Returns:
        The phases to reveal, and those that are left out because they are still open.

    Raises:
        OrganizerError: If a phase does not exist; if a named phase is open, or every phase is, and that is not allowed.
    """
    for name in named or ():
        session.check_phase(name)
    names = list(named or session.configuration.phases)
    with session.store.read() as tx:
        withheld = {name for name in names if withholds(tx, name)}
        closed = {name for name in names if (row := tx.phase_record(name)) and row.closed_at}
    left_out = [name for name in names if name in withheld or not (open_too or name in closed)]
    if left_out and (named or left_out == names):
        raise OrganizerError(
            f"Still open: {', '.join(left_out)}. After the reveal, teams could train on the tasks and submit again.",
            cure=f"Close a phase before you reveal it: neuco-worker board close --phase {left_out[0]}."
            + ("" if left_out[0] in withheld else " To reveal it anyway, add --open."),
            code="reveal.open",
        )
    return [name for name in names if name not in left_out], left_out


def reveal(
    session: OrganizerSession,
    phases: Collection[str],
    *,
    labels: bool,
) -> list[str]:
    """Reveal phases: close the log of receipts, and store the files that the next push publishes, in one transaction.

    So every score in the documents has its receipt in the public log, and no commitment, board or rescore can come between them. The key of
    a phase is an HMAC of the challenge secret, so revealing one phase exposes no other. A phase that was revealed already, and whose
    documents would be the same, is left as it is, including its time.

    Other phases that were revealed before are revealed again if something has changed in them, because boards of one phase may depend on
    another one, and because every entry of the log can be opened once nothing is hidden any more. A phase whose tasks were changed since is
    left as it was, because its new tasks may still be hidden.

    Args:
        session: The challenge.
        phases: Phase codenames.
        labels: Whether the label rows are published, or only their hashes.

    Returns:
        The phases with something revealed that was not revealed before.

    Raises:
        OrganizerError: If a phase is not recorded, or the secret is not the one of its record.
    """
    with session.store.write() as tx:
        newest = [private["manifests"] for _, private in tx.commitments()][-1]
        others = {
            name: document.labels == "published"
            for name, document in _earlier(tx)
            if list(document.to_json()["manifests"].values())[-1] == newest.get(name)
        }
        return _reveal(session, tx, others | dict.fromkeys(phases, labels))


def _earlier(tx: Transaction) -> Iterator[tuple[str, Reveal]]:
    """Yield each revealed phase with its document."""
    for name, files in tx.reveals().items():
        yield name, read(Reveal, files[reveal_path(name)], reveal_path(name))


def _reveal(session: OrganizerSession, tx: Transaction, phases: Mapping[str, bool]) -> list[str]:
    """Store the documents of phases that have changed, and return these phases.

    Args:
        session: The challenge.
        tx: The transaction.
        phases: Phase to whether its label rows are published.
    """
    secret, earlier, fresh = read_secret(session.configuration), tx.reveals(), {}
    now = register(tx, session.clock())
    for name, labels in phases.items():
        record = open_phase(tx, name, secret).record
        document, texts = _document(tx, record, phase_key(secret, name), labels=labels, now=now)
        files = {reveal_path(name): document.file_text(), **texts}
        if name not in earlier or _timeless(name, files) != _timeless(name, earlier[name]):
            fresh[name] = document, texts
    if not fresh:
        return []
    tx.set_fact(REVEALED, now.isoformat())
    close_batch(tx, signer(tx, session.configuration), made_at=now)
    nothing_left = set(tx.phases()) <= phases.keys()
    fillers = {str(line): key for line, key in tx.fillers().items()} if nothing_left else None
    for name, (document, texts) in fresh.items():
        complete = document.model_copy(update={"fillers": fillers})
        tx.add_reveal(name, {reveal_path(name): complete.file_text(), **texts})
    tx.request_publish()
    return list(fresh)


def _timeless(phase: str, files: Mapping[str, str]) -> dict[str, Any]:
    """Return what is revealed, without its time and what keeps growing with the log."""
    document = json.loads(files[reveal_path(phase)])
    return {**files, reveal_path(phase): document | {"revealed_at": None, "fillers": None}}


def label_csv(task: Task) -> str:
    """Write a task's parsed rows; parsing them again gives the same task version."""
    import pandas as pd

    columns = {"id": task.ids, "label": [repr(float(label)) for label in task.labels]}
    if task.groups:
        columns["group"] = task.groups
    return pd.DataFrame(columns).to_csv(index=False, lineterminator="\n")


def _document(
    tx: Transaction, record: PhaseRecord, key: bytes, *, labels: bool, now: datetime
) -> tuple[Reveal, dict[str, str]]:
    """Return the document, and all texts next to it by path: the parts of its register, the ids, and the labels."""
    phase, folder = record.codename, f"{FOLDER}/{record.codename}"
    boards = [from_json(text) for text in tx.boards(phase)]
    stood = {row.submission for board in boards for row in board.standings}
    parts = disclosure.register_parts(_register(tx, phase, stood))
    document = Reveal(
        format=FORMAT,
        phase=phase,
        revealed_at=now.replace(microsecond=0),
        manifests={
            str(public["sequence"]): Manifest.model_validate(private["manifests"][phase])
            for public, private in tx.commitments()
            if phase in private["manifests"]
        },
        parts=[part for part, _ in parts],
        boards=[board.made_at for board in boards],
        key=key.hex(),
        labels="published" if labels else "hashes",
        fillers=None,
    )
    texts = {f"{folder}/{part.name}": text for part, text in parts}
    texts[f"{folder}/ids.txt"] = id_lists.text(record.ids)
    if labels:
        for task in record.tasks:
            texts[f"{folder}/labels/{task.name}__{task.type.value}.csv"] = label_csv(task)
    return document, texts


def _register(tx: Transaction, phase: str, stood: Collection[int]) -> Iterator[str]:
    """Return the openings of a phase's register: all entries, except private ones that were never on a board."""
    scored = {event.subject for event in tx.events(phase) if event.kind == events.SCORE}
    answered = {f"submission {row.pk}" for row in tx.submissions(phase=phase) if row.posted is not None}
    newest = {event.subject: event.fields for event in tx.events(phase) if event.kind == events.SUBMISSION}
    baselines = [
        event.fields["rules"]["baselines"] for event in tx.events(phase) if event.kind == events.PHASE
    ][-1]
    shown = {
        subject
        for subject, fields in newest.items()
        if _is_shown(fields, stood, baselines, answered=subject in answered & scored)
    }
    qualifying = _qualifying(tx, phase)
    for event in tx.events(phase):
        nonce = bytes.fromhex(event.nonce)
        if event.kind in (events.PHASE, events.TEAM, events.CHALLENGE) or event.subject in shown:
            opening = events.opened(event.fields, nonce)
        elif event.kind == events.SUBMISSION and event.fields["team_key"] in qualifying:
            opening = events.opened_in_part(event.fields, nonce, events.QUALIFYING_FIELDS)
        else:
            opening = events.opened_in_part(event.fields, nonce)
        yield json.dumps(opening, ensure_ascii=False, separators=(",", ":"))


def _qualifying(tx: Transaction, phase: str) -> frozenset[int]:
    """Return the teams on boards whose rules require a score in this phase; recomputing those boards needs their private submissions."""
    asking = [
        other
        for other in tx.phases()
        if any(
            event.fields["rules"]["eligible_if_scored_in"] == phase
            for event in tx.events(other)
            if event.kind == events.PHASE
        )
    ]
    return frozenset(
        row.team_key for other in asking for text in tx.boards(other) for row in from_json(text).standings
    )


def _is_shown(
    fields: events.Fields, stood: Collection[int], baselines: Collection[str], *, answered: bool
) -> bool:
    """Return whether an entry is public: its score was shown and it was sent as public, or it was on a board at some time."""
    public = answered and (fields["public_at_first"] or fields["public"])
    trial = fields["own"] and fields["method"] not in baselines
    return fields["submission"] in stood or bool(public and not trial)
