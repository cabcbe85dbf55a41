"""From the register to boards: what a publish cycle reads, the boards that follow from it, and how they are stored."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import TypeAdapter

from leaderboard import Board, PhaseSite, PhaseSnapshot, Site, Terms
from leaderboard.ranking import board as boards
from leaderboard.ranking import waiting_teams
from leaderboard.rendering import BoardName, board_name, recorded_boards
from scoring.inputs.limits import MOST_MEGABYTES
from worker.answers.answers import AT_ONCE, correct_phase
from worker.challenge.configuration import Configuration, web_address
from worker.challenge.signing import Signer
from worker.fairness import commitments, disclosure, id_lists, receipts
from worker.fairness.commitments import SOFTWARE
from worker.fairness.decisions import public_decisions
from worker.fairness.manifests import Commitment
from worker.fairness.published import StateIsBehind
from worker.fairness.register import LATEST, RegisterReplay, register
from worker.fairness.replay import PhaseReplay
from worker.participant.challenge import announced, list_path
from worker.state import AT_EVALAI, REVEALED, State, SubmissionRow, Transaction

PORTION = 100  # documents in memory at a time


class BoardHistory:
    """The boards of all phases that were read so far; each reading adds the new ones.

    A stored board never changes, and a publish cycle needs the whole history (for the chart of ranks and the appended lines). Reading all
    of it each time would take more time and memory as a challenge goes on.

    A row that is equal in consecutive boards is kept once. Figures, the larger part of a document, are kept only for the latest board,
    because only the page uses them.
    """

    def __init__(self) -> None:
        self._boards: dict[str, list[Board]] = {}

    def read(self, tx: Transaction, phase: str) -> tuple[Board, ...]:
        """Return a phase's boards, oldest first."""
        row = self._boards.setdefault(phase, [])
        while documents := tx.boards(phase, after=row[-1].sequence if row else 0, at_most=PORTION):
            for document in documents:
                boards.append_board(row, boards.from_json(document))
        return tuple(row)


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """What a publish cycle reads from the database at its beginning, and the boards that it adds.

    Attributes:
        site: What is published, including the new boards.
        new: The new boards.
        snapshots: Phase to what decides its board now, for each phase that may get a new board: not a closed one, or one that withholds its
            values.
        generation: The cycle publishes everything that was requested up to this number.
        posted: Submissions whose answers EvalAI has and that no board includes yet.
        attestations: Commitments, receipts, public ids and reveals: path to content.
        assumed: What :func:`assumptions` returned.
        at: When all of this was read.
        lost_boards: Boards that a restored state lacks.
    """

    site: Site
    new: tuple[Board, ...] = ()
    snapshots: Mapping[str, PhaseSnapshot]
    generation: int
    posted: tuple[SubmissionRow, ...]
    attestations: Mapping[str, bytes]
    assumed: object
    at: datetime
    lost_boards: frozenset[BoardName]


LOST_BOARDS = "lost_boards"  # a fact


def check_boards(
    published: bytes | None, ours: Mapping[str, Sequence[Board]], lost: Collection[BoardName]
) -> None:
    """Check that a state lacks none of the boards that the challenge has published.

    Args:
        published: The history as the challenge published it last.
        ours: The boards of all phases in the state.
        lost: What a restored state may lack.

    Raises:
        StateIsBehind: If one is missing.
    """
    made = {board_name(board) for boards_so_far in ours.values() for board in boards_so_far}
    if any(
        name[0] in ours and name not in made and name not in lost
        for name in recorded_boards(published or b"")
    ):
        raise StateIsBehind("a board")


def lost_boards(tx: Transaction) -> frozenset[BoardName]:
    """Return the boards that a restored state lacks."""
    return frozenset(
        (phase, sequence, at) for phase, sequence, at in json.loads(tx.fact(LOST_BOARDS) or "[]")
    )


def close_due_batch(tx: Transaction, signer: Signer, *, now: datetime) -> None:
    """Close the batch of receipts that is due, with everything that is registered now."""
    if receipts.is_due(tx, now):
        receipts.close_batch(tx, signer, made_at=register(tx, now))
        tx.request_publish()


def begin_cycle(
    tx: Transaction,
    signer: Signer,
    configuration: Configuration,
    phases: Collection[str],
    history: BoardHistory,
    *,
    replay: RegisterReplay,
    now: datetime,
    closing: str | None = None,
) -> Cycle:
    """Register what decides the boards now, and read it with everything else that a publish cycle needs.

    Everything comes from the database; no file of a phase is read. Boards carry the time of this registration.

    Args:
        tx: The transaction.
        signer: The challenge's key.
        configuration: The checked configuration.
        phases: Codenames.
        history: Boards so far.
        replay: Everything that is registered.
        now: The time.
        closing: A phase that is being closed; it gets a board even if it withholds its values until then.
    """
    register(tx, now)
    for name in phases:
        correct_phase(tx, signer, replay, name, now=now, most=AT_ONCE)
    at, replays = tx.attestation_time(now), replay.at(tx)  # later than what the corrections registered
    attestations, revealed = attestation_files(tx), tx.revealed()
    terms, sites, snapshots = _terms(tx, configuration, attestations), [], {}
    for name in phases:
        site, snapshot = _phase_site(tx, configuration, replays[name], history, closing=name == closing)
        sites.append(replace(site, terms=terms.get(name), revealed=name in revealed))
        if snapshot is not None and site.closed_at is None and site.waiting is None:
            snapshots[name] = snapshot
    return Cycle(
        site=make_site(configuration, tuple(sites), commitments.public(tx), receipts.logged_at(tx)),
        snapshots=snapshots,
        generation=tx.requested_publish(),
        posted=tuple(tx.submissions([State.POSTED])),
        attestations=attestations,
        assumed=assumptions(tx, phases),
        at=at,
        lost_boards=lost_boards(tx),
    )


def _phase_site(
    tx: Transaction, configuration: Configuration, phase: PhaseReplay, history: BoardHistory, *, closing: bool
) -> tuple[PhaseSite, PhaseSnapshot | None]:
    """Return what is published of a phase so far, with what decides its board now; that is None before the phase is recorded."""
    name, snapshot = phase.name, phase.snapshot(LATEST)
    withheld = phase.withholds(LATEST) and not closing
    decisions, only_if_shown = public_decisions(phase)
    site = PhaseSite(
        codename=name,
        rules=snapshot.rules if snapshot else configuration.phases[name].rules,
        history=history.read(tx, name),
        waiting=waiting_teams(snapshot) if snapshot and withheld else None,
        closed_at=phase.closed_at,
        methods=phase.methods,
        decisions=decisions,
        only_if_shown=only_if_shown,
    )
    return site, snapshot


def assumptions(tx: Transaction, phases: Collection[str]) -> object:
    """Return what makes new boards void if it changes: records and boards, commitments, and what is revealed or must be."""
    phases_now = [(tx.phase_record(name), tx.newest_board(name)) for name in phases]
    to_open = {name: tx.newest_event(name) for name in tx.revealed()}
    return phases_now, len(tx.public_commitments()), tx.fact(REVEALED), to_open


def _terms(
    tx: Transaction, configuration: Configuration, attestations: Mapping[str, bytes]
) -> dict[str, Terms]:
    """Return what a submission to each phase must have, from the commitments, and the deadline and limits that EvalAI has shown."""
    at_evalai, read = tx.document(AT_EVALAI), TypeAdapter(Terms).validate_python
    most = configuration.submission.max_megabytes
    return {
        phase: read(
            {
                "embedding_dim": protocol["embedding_dim"],
                "ids": list_path(phase) if list_path(phase) in attestations else "",
                "max_megabytes": None if most == MOST_MEGABYTES else most,
                **at_evalai.get(phase, {}),
            }
        )
        for phase, protocol in announced(tx.public_commitments()).items()
    }


def attestation_files(tx: Transaction) -> dict[str, bytes]:
    """Return the files with which the challenge can be checked: commitments, receipts, public ids, and what was revealed."""
    files = {
        commitments.PATH: commitments.commitment_file(tx),
        receipts.PATH: receipts.receipts_file(tx),
        disclosure.FILES_PATH: disclosure.files_file(tx),
        **id_lists.files(tx),
    }
    for revealed in tx.reveals().values():
        files |= {path: text.encode() for path, text in revealed.items()}
    return {path: content for path, content in files.items() if content is not None}


def make_boards(cycle: Cycle) -> Cycle:
    """Make the new boards; this function is pure."""
    new = {
        site.codename: boards.next_board(cycle.snapshots[site.codename], site.history, at=cycle.at)
        for site in cycle.site.phases
        if site.codename in cycle.snapshots
    }
    made = {name: board for name, board in new.items() if board is not None}
    sites = (
        replace(site, history=(*site.history, made[site.codename])) if site.codename in made else site
        for site in cycle.site.phases
    )
    return replace(cycle, site=replace(cycle.site, phases=tuple(sites)), new=tuple(made.values()))


def keep_boards(tx: Transaction, cycle: Cycle) -> bool:
    """Store the new boards; what is pushed is made from the stored ones.

    Returns:
        False, with nothing stored, if meanwhile somebody else made a board, or a phase was closed, reopened, rescored or revealed, because
        the board would ignore that change.
    """
    if assumptions(tx, [phase.codename for phase in cycle.site.phases]) != cycle.assumed:
        return False
    for board in cycle.new:
        tx.save_board(board.phase, board.sequence, boards.to_json(board))
    return True


def make_site(
    configuration: Configuration,
    phases: tuple[PhaseSite, ...],
    entries: Sequence[Commitment],
    logged_at: datetime | None,
) -> Site:
    """Return what the whole site shows, with the commitments, and the time of the log's newest line, that are published with it."""
    server, challenge = configuration.evalai.server, configuration.evalai.challenge
    return Site(
        title=configuration.challenge.title,
        phases=phases,
        link=f"{server}/web/challenges/challenge-page/{challenge}/overview",
        repository=web_address(configuration.leaderboard.repository) or "",
        page=configuration.leaderboard.page,
        committed=bool(entries),
        software=SOFTWARE,
        access=entries[0].access if entries else "",
        logged_at=logged_at,
    )
