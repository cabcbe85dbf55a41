"""What is open of revealed phases: everything with which anybody can check them.

A reveal is a decision of the organizers. From then on, each publish cycle also opens what was added to the phase, so everything that is
public of a revealed phase can be checked.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

from leaderboard.ranking import from_json
from scoring.randomness import phase_key
from scoring.tasks import Task
from worker.challenge.configuration import Configuration
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import open_phase, read_secret
from worker.challenge.signing import Signer
from worker.fairness import disclosure, events, id_lists
from worker.fairness.disclosure import Reveal, reveal_path
from worker.fairness.documents import FORMAT
from worker.fairness.manifests import Manifest
from worker.fairness.receipts import close_batch
from worker.state import REVEALED, Transaction

FOLDER = "reveal"
OPENED = "opened"  # a fact: what the documents of each revealed phase were made from


def with_news(tx: Transaction) -> list[str]:
    """Return the revealed phases to which something was added since their documents were made."""
    return [name for name, sources in tx.document(OPENED).items() if sources != _sources(tx, name)]


def open_news(
    tx: Transaction,
    configuration: Configuration,
    signer: Signer,
    *,
    now: datetime,
    reveal: Mapping[str, bool] | None = None,
) -> list[str]:
    """Make the documents of phases that are revealed or have news, with everything that is registered now, and close the log of receipts.

    So every score in the documents has its receipt in the public log. The key of a phase is an HMAC of the challenge secret, so revealing
    one phase exposes no other. Documents that would be the same are left as they are, including their time.

    Args:
        tx: The transaction, after everything was registered.
        configuration: The checked configuration.
        signer: The challenge's key.
        now: The time of the documents, later than everything that is registered.
        reveal: Phases to reveal, and whether their label rows are published, not only their hashes; published ones stay.

    Returns:
        The phases with something open that was not open before.

    Raises:
        OrganizerError: If a phase is not recorded, or the secret is not the one of its record.
    """
    secret, before, fresh, opened = read_secret(configuration), tx.reveals(), {}, tx.document(OPENED)
    asked = reveal or {}
    phases = {  # labels that were published stay
        name: asked.get(name, False) or any("/labels/" in path for path in before.get(name, {}))
        for name in (*with_news(tx), *asked)
    }
    for name, labels in phases.items():
        record = open_phase(tx, name, secret).record
        document, texts = _document(tx, record, phase_key(secret, name), labels=labels, now=now)
        files = {reveal_path(name): document.file_text(), **texts}
        if name not in before or _timeless(name, files) != _timeless(name, before[name]):
            fresh[name] = document, texts
        opened[name] = _sources(tx, name)
    tx.set_fact(OPENED, json.dumps(opened))
    if not fresh:
        return []
    tx.set_fact(REVEALED, now.isoformat())
    close_batch(tx, signer, made_at=now)
    nothing_left = set(tx.phases()) <= before.keys() | phases.keys()
    fillers = {str(line): key for line, key in tx.fillers().items()} if nothing_left else None
    for name, (document, texts) in fresh.items():
        complete = document.model_copy(update={"fillers": fillers})
        tx.add_reveal(name, {reveal_path(name): complete.file_text(), **texts})
    return list(fresh)


def _sources(tx: Transaction, phase: str) -> list[int]:
    """Return numbers that grow with everything from which a phase's documents are made."""
    boards = [tx.board_number(name) for name in (phase, *_asking(tx, phase))]
    return [tx.newest_event(phase), *boards, len(tx.public_commitments())]


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
    register = disclosure.register_texts(_register(tx, phase, stood))
    document = Reveal(
        format=FORMAT,
        phase=phase,
        revealed_at=now.replace(microsecond=0),
        manifests={
            str(public["sequence"]): Manifest.model_validate(private["manifests"][phase])
            for public, private in tx.commitments()
            if phase in private["manifests"]
        },
        parts=len(register),
        boards=[board.made_at for board in boards],
        key=key.hex(),
        labels="published" if labels else "hashes",
        fillers=None,
    )
    texts = {disclosure.register_path(phase, number): text for number, text in enumerate(register, 1)}
    texts[f"{folder}/ids.txt"] = id_lists.text(record.ids)
    if labels:
        for task in record.tasks:
            texts[f"{folder}/labels/{task.name}__{task.type.value}.csv"] = label_csv(task)
    return document, texts


def _register(tx: Transaction, phase: str, stood: Collection[int]) -> Iterator[str]:
    """Return the openings of a phase's register: all entries, except those that were private or a trial all the time."""
    scored = {event.subject for event in tx.events(phase) if event.kind == events.SCORE}
    answered = {f"submission {row.pk}" for row in tx.submissions(phase=phase) if row.posted is not None}
    decided = (event.fields["rules"] for event in tx.events(phase, kind=events.PHASE))
    baselines = {name for rules in decided for name in rules["baselines"]}
    shown = {
        event.subject
        for event in tx.events(phase, kind=events.SUBMISSION)
        if _is_shown(event.fields, stood, baselines, answered=event.subject in answered & scored)
    }
    qualifying = _qualifying(tx, phase)
    for event in tx.events(phase):
        nonce = bytes.fromhex(event.nonce)
        if event.kind in (events.PHASE, events.TEAM, events.CHALLENGE) or event.subject in shown:
            opening = events.opened(event.fields, nonce)
        elif event.kind == events.SUBMISSION and event.fields["team_key"] in qualifying:
            opening = events.opened_in_part(event.fields, nonce, events.QualifyingEvent)
        else:
            opening = events.opened_in_part(event.fields, nonce)
        yield json.dumps(opening, ensure_ascii=False, separators=(",", ":"))


def _qualifying(tx: Transaction, phase: str) -> frozenset[int]:
    """Return the teams on boards whose rules require a score in this phase; recomputing those boards needs their private submissions."""
    return frozenset(
        row.team_key
        for other in _asking(tx, phase)
        for text in tx.boards(other)
        for row in from_json(text).standings
    )


def _asking(tx: Transaction, phase: str) -> list[str]:
    """Return the phases whose rules have required a score in this one."""
    return [
        other
        for other in tx.phases()
        if any(
            event.fields["rules"]["eligible_if_scored_in"] == phase
            for event in tx.events(other, kind=events.PHASE)
        )
    ]


def _is_shown(
    fields: events.Fields, stood: Collection[int], baselines: Collection[str], *, answered: bool
) -> bool:
    """Return whether an entry is opened for what it was at some time: on a board, or answered and public, so that it counted."""
    public = answered and (fields["public_at_first"] or fields["public"])
    trial = fields["own"] and fields["method"] not in baselines
    return fields["submission"] in stood or bool(public and not trial)
