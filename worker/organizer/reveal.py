"""The reveal: publish, after a phase has ended, everything with which anybody can check it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from leaderboard.ranking import from_json
from scoring.errors import OrganizerError
from scoring.randomness import phase_key
from scoring.tasks import Task
from worker.challenge.files import read_secret
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import open_phase
from worker.fairness import disclosure, events, id_lists, reveals
from worker.fairness.documents import FORMAT, read
from worker.fairness.pseudonyms import opened, pseudonyms
from worker.fairness.receipts import close_batch
from worker.fairness.register import register, withholds
from worker.fairness.reveals import OpenedCommitment, Reveal, reveal_path
from worker.organizer.disclosure import with_latecomers
from worker.organizer.session import OrganizerSession
from worker.state import REVEALED, Event, Transaction

FOLDER = "reveal"
LONG_AGO = datetime.min.replace(tzinfo=UTC)


def choose(
    session: OrganizerSession, named: Sequence[str] | None, *, open_too: bool
) -> tuple[list[str], list[str]]:
    """Choose the phases to reveal: the named ones, or all that are frozen.

    Once a phase's tasks are public, anyone who may still submit to it can train on them, and that cannot be undone.

    Args:
        session: The challenge.
        named: Phases that the organizer named, if any.
        open_too: Whether phases that are not frozen may be revealed; one that still withholds its values never may.

    Returns:
        The phases to reveal, and those that are left out because they are still open.

    Raises:
        OrganizerError: If a phase does not exist; if a named phase is open, or every phase is, and that is not allowed.
    """
    for name in named or ():
        session.check_phase(name)
    names = list(named or session.configuration.phases)
    with session.store.read() as tx:
        records = {name: tx.phase_record(name) for name in names}
        withheld = [name for name in names if withholds(tx, name)]
    left_out = [
        name
        for name, record in records.items()
        if name in withheld or (not open_too and (record is None or record.frozen_at is None))
    ]
    if left_out and (named or left_out == names):
        raise OrganizerError(
            f"Still open: {', '.join(left_out)}. After the reveal, teams could train on the tasks and submit again.",
            cure=f"Close a phase before you reveal it: neuco-worker board freeze --phase {left_out[0]}."
            + ("" if left_out[0] in withheld else " To reveal it anyway, add --open."),
            code="reveal.open",
        )
    return [name for name in names if name not in left_out], left_out


def reveal(
    session: OrganizerSession, phases: Collection[str], *, labels: bool, contents: Mapping[str, str]
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
        contents: Phase to the list of the published contents, see :func:`worker.organizer.disclosure.disclose`.

    Returns:
        The phases with something revealed that was not revealed before.

    Raises:
        OrganizerError: If a phase does not exist or is not recorded, or the secret is not the one of its record.
    """
    for name in phases:
        session.check_phase(name)
    secret = read_secret(session.configuration)
    with session.store.write() as tx:
        others = {
            name: files
            for name, files in tx.reveals().items()
            if name not in phases and _is_unchanged(tx, name, files)
        }
        labels_of, contents_of = _as_told(others)
        with_labels = {**dict.fromkeys(phases, labels), **labels_of}
        return _reveal(session, tx, secret, with_labels, {**contents_of, **contents})


def _is_unchanged(tx: Transaction, phase: str, files: Mapping[str, str]) -> bool:
    """Return whether a phase still has the tasks and the protocol that were revealed, so that revealing it again exposes nothing."""
    revealed = json.loads(files[reveal_path(phase)])["commitments"]
    newest = [private["manifests"].get(phase) for _, private in tx.commitments()][-1]
    return bool(revealed[-1]["manifest"] == newest)


def reveal_again(session: OrganizerSession, tx: Transaction) -> list[str]:
    """Reveal all revealed phases again from the present state; return those whose documents have changed.

    Raises:
        OrganizerError: If the secret is gone, or not the one of a phase's record.
    """
    known = tx.reveals()
    if not known:
        return []
    labels, contents = _as_told(known)
    return _reveal(session, tx, read_secret(session.configuration), labels, contents)


def _as_told(known: Mapping[str, Mapping[str, str]]) -> tuple[dict[str, bool], dict[str, str]]:
    """Return for each reveal whether the label rows were published, and the list of contents."""
    labels = {name: _revealed(files, name).labels == "published" for name, files in known.items()}
    return labels, {name: files[disclosure.path(name)] for name, files in known.items()}


def _reveal(
    session: OrganizerSession,
    tx: Transaction,
    secret: bytes,
    labels: Mapping[str, bool],
    contents: Mapping[str, str],
) -> list[str]:
    known, fresh = tx.reveals(), {}
    now = register(tx, session.clock())
    for name, with_labels in labels.items():
        record = open_phase(tx, name, secret).record
        document, hidden = _document(tx, name, phase_key(secret, name), labels=with_labels, now=now)
        hidden |= _hidden_files(record, labels=with_labels)
        hidden[disclosure.path(name)] = with_latecomers(tx, name, contents)
        if name not in known or _timeless(document, hidden) != _timeless(
            _revealed(known[name], name), _others(known[name], name)
        ):
            fresh[name] = document, hidden
    if not fresh:
        return []
    tx.set_fact(REVEALED, now.isoformat())
    close_batch(tx, made_at=now)
    nothing_left = set(tx.phases()) <= labels.keys()
    for name, (document, hidden) in fresh.items():
        fillers = {str(line): key for line, key in tx.fillers().items()} if nothing_left else None
        complete = document.model_copy(update={"fillers": fillers})
        tx.add_reveal(name, {reveal_path(name): complete.text(), **hidden})
        tx.log("revealed", actor=session.actor, now=now, phase=name, labels=labels[name])
    tx.request_publish()
    return list(fresh)


def _revealed(files: Mapping[str, str], phase: str) -> Reveal:
    """Return the document among the files of a reveal."""
    return read(Reveal, files[reveal_path(phase)], reveal_path(phase))


def _others(files: Mapping[str, str], phase: str) -> dict[str, str]:
    return {path: text for path, text in files.items() if path != reveal_path(phase)}


def _timeless(document: Reveal, hidden: Mapping[str, str]) -> tuple[Reveal, dict[str, str]]:
    """Return what is revealed, without its time and what keeps growing with the log."""
    return document.model_copy(update={"revealed_at": LONG_AGO, "fillers": None}), dict(hidden)


def _hidden_files(record: PhaseRecord, *, labels: bool) -> dict[str, str]:
    folder = f"{FOLDER}/{record.codename}"
    files = {f"{folder}/ids.txt": id_lists.text(record.ids)}
    if labels:
        for task in record.tasks:
            files[f"{folder}/labels/{task.name}__{task.type.value}.csv"] = label_csv(task)
    return files


def label_csv(task: Task) -> str:
    """Write a task's parsed rows; parsing them again gives the same task version."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "label"])
    writer.writerows(
        (identifier, repr(float(label))) for identifier, label in zip(task.ids, task.labels, strict=True)
    )
    return text.getvalue()


def _document(
    tx: Transaction, phase: str, key: bytes, *, labels: bool, now: datetime
) -> tuple[Reveal, dict[str, str]]:
    """Return the document, and the parts of its register: path to text."""
    boards = [from_json(text) for text in tx.boards(phase)]
    stood = {row.submission for board in boards for row in board.standings}
    register_parts = reveals.written(_register(tx, phase, stood))
    document = Reveal(
        format=FORMAT,
        phase=phase,
        revealed_at=now.replace(microsecond=0),
        commitments=[
            OpenedCommitment.model_validate(
                {
                    "sequence": public["sequence"],
                    "opening": private["opening"],
                    "manifest": private["manifests"].get(phase),
                }
            )
            for public, private in tx.commitments()
        ],
        parts=[part for part, _ in register_parts],
        boards=[board.made_at for board in boards],
        key=key.hex(),
        labels="published" if labels else "hashes",
        fillers=None,
    )
    return document, {f"{FOLDER}/{phase}/{part.name}": text for part, text in register_parts}


def _register(tx: Transaction, phase: str, stood: Collection[int]) -> Iterator[str]:
    """Return the openings of a phase's register: all entries, except private ones that were never on a board."""
    rows = tx.submissions(phase=phase)
    scored = {event.subject for event in tx.each_event(phase) if event.kind == events.SCORE}
    answered = {f"submission {row.pk}" for row in rows if row.posted is not None} & scored
    newest = {
        event.subject: event.fields for event in tx.each_event(phase) if event.kind == events.SUBMISSION
    }
    shown = {
        subject
        for subject, fields in newest.items()
        if _is_shown(fields, stood, answered=subject in answered)
    }
    qualifying, removed = _qualifying(tx, phase), pseudonyms(tx)
    for event in tx.each_event(phase):
        nonce = bytes.fromhex(event.nonce)
        if _is_open(event, shown):
            opening = opened(event.fields, nonce, removed)
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
            for event in tx.each_event(other)
            if event.kind == events.PHASE
        )
    ]
    return frozenset(
        row.team_key for other in asking for text in tx.boards(other) for row in from_json(text).standings
    )


def _is_open(event: Event, shown: Collection[str]) -> bool:
    return event.kind in (events.PHASE, events.CHALLENGE) or event.subject in shown


def _is_shown(fields: events.Fields, stood: Collection[int], *, answered: bool) -> bool:
    """Return whether an entry is public: its score was shown and it is public, or it was on a board at some time."""
    public = answered and (fields["public_now"] or fields["public_at_first"])
    trial = fields["own"] and not fields["baseline"]
    return fields["submission"] in stood or bool(public and not trial)
