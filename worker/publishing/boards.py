"""From score cells to boards: what a publish cycle reads, the boards that follow from it, and how they are stored."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from pydantic import TypeAdapter

from leaderboard import Board, Method, PhaseSite, PhaseSnapshot, Rules, Site, Terms
from leaderboard.git import Publisher
from leaderboard.ranking import board as boards
from leaderboard.ranking import waiting_teams
from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from worker.challenge.configuration import Configuration, web_address
from worker.challenge.context import Context
from worker.challenge.files import rules_of
from worker.challenge.setups import alert_key
from worker.evaluation.answers import AT_ONCE, correct_phase
from worker.fairness import commitments, id_lists, receipts
from worker.fairness.decisions import public_decisions
from worker.fairness.fold import PhaseFold
from worker.fairness.membership import FACT, pseudonyms
from worker.fairness.register import LATEST, RegisterFold, register
from worker.fairness.signing import Signer, signer
from worker.participant.challenge import announced, list_path
from worker.publishing.board_history import BoardHistory
from worker.publishing.last_push import last_commit
from worker.runtime import Act, Result
from worker.state import AT_EVALAI, COUNTED, LOG_UNSEEN, REVEALED, State, SubmissionRow, Transaction

VAIN_TRIES = 3  # after which the organizer is told


@dataclass(frozen=True, kw_only=True)
class Preconditions:
    """What a publish cycle assumes until it ends; a change meanwhile makes the cycle void, or requires another one.

    Attributes:
        generation: The cycle publishes everything that was requested up to this number.
        posted: Submissions whose answers EvalAI has and that no board includes yet.
        attestations: Commitments, receipts, public ids and reveals: path to content.
        assumed: What :func:`assumptions` returned.
        signer: The key that signs what is pushed.
        at: When all of this was read.
        last: The commit that was last pushed to the configured branch; None before the first.
        restored: Whether the state may lack what is in the repository, because it comes from a backup.
    """

    generation: int
    posted: tuple[SubmissionRow, ...]
    attestations: Mapping[str, bytes]
    assumed: object
    signer: Signer
    at: datetime
    last: str | None = None
    restored: bool = False


@dataclass(frozen=True, kw_only=True)
class PendingBoards:
    """What a publish cycle adds to the repository."""

    site: Site
    new: tuple[Board, ...]
    preconditions: Preconditions


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a publish cycle reads from the database at its beginning.

    Attributes:
        site: What is published, without new boards.
        snapshots: Phase to what decides its board now, for each phase that may get a new board: not a frozen one, one that withholds its
            values, or one whose record is damaged.
        damaged: Phase to the reason why its record cannot be read.
        preconditions: What the cycle assumes.
    """

    site: Site
    snapshots: Mapping[str, PhaseSnapshot]
    damaged: Mapping[str, NeucoError]
    preconditions: Preconditions


def read_inputs(
    tx: Transaction,
    configuration: Configuration,
    phases: Collection[str],
    history: BoardHistory,
    fold: RegisterFold,
    *,
    now: datetime,
    closing: str | None = None,
) -> Inputs:
    """Register what decides the boards now, and read it with everything else that a publish cycle needs.

    Everything comes from the database; no file of a phase is read. Boards carry the time of this registration.

    Args:
        tx: The transaction.
        configuration: The checked configuration.
        phases: Codenames.
        history: Boards so far.
        fold: Everything that is registered.
        now: The time.
        closing: A phase that is being closed; it gets a board even if it withholds its values until then.
    """
    register(tx, now)
    damaged = {}
    for name in phases:
        try:
            correct_phase(tx, fold, name, now=now, most=AT_ONCE)
        except InfrastructureError as error:
            damaged[name] = error
    at, folds = tx.attestation_time(now), fold.at(tx)  # later than what the corrections registered
    terms, revealed, attestations = _terms(tx), tx.reveals(), attestation_files(tx)
    sites, snapshots = [], {}
    for name in phases:
        site, snapshot = _phase_site(
            tx, configuration, folds.phase(name), history, closing=name == closing, damaged=name in damaged
        )
        sites.append(replace(site, terms=terms.get(name), revealed=name in revealed))
        if snapshot is not None and site.frozen_at is None and site.waiting is None:
            snapshots[name] = snapshot
    return Inputs(
        site=make_site(configuration, tuple(sites), committed=commitments.PATH in attestations),
        snapshots=snapshots,
        damaged=damaged,
        preconditions=Preconditions(
            generation=tx.requested_publish(),
            posted=tuple(tx.submissions([State.POSTED])),
            attestations=attestations,
            assumed=assumptions(tx, phases),
            signer=signer(tx),
            at=at,
            last=last_commit(tx, configuration),
            restored=tx.fact(LOG_UNSEEN) is not None,
        ),
    )


def _phase_site(
    tx: Transaction,
    configuration: Configuration,
    phase: PhaseFold,
    history: BoardHistory,
    *,
    closing: bool,
    damaged: bool,
) -> tuple[PhaseSite, PhaseSnapshot | None]:
    """Return what is published of a phase so far, with what decides its board now unless its record is damaged."""
    name, boards_so_far = phase.name, history.read(tx, phase.name)
    record = tx.phase_record(name)
    snapshot = None if damaged else phase.snapshot(LATEST)
    withheld = snapshot is not None and not closing and phase.withholds(LATEST)
    decisions, only_if_shown = public_decisions(phase)
    site = PhaseSite(
        codename=name,
        title=name,
        rules=snapshot.rules if snapshot else _rules_so_far(configuration, name, boards_so_far),
        history=boards_so_far,
        waiting=waiting_teams(snapshot) if snapshot and withheld else None,
        frozen_at=record.frozen_at if record is not None else None,
        methods=methods(tx, name),
        decisions=decisions,
        only_if_shown=only_if_shown,
    )
    return site, snapshot


def assumptions(tx: Transaction, phases: Collection[str]) -> object:
    """Return what makes new boards void if it changes: records and boards of the phases, and what was revealed or removed."""
    phases_now = [(tx.phase_record(name), tx.last_board(name)) for name in phases]
    return phases_now, tx.fact(REVEALED), tx.fact(FACT)


def _terms(tx: Transaction) -> dict[str, Terms]:
    """Return what a submission to each phase must have, from the commitments, and the deadline and limits that EvalAI has shown."""
    lists, at_evalai = id_lists.files(tx), json.loads(tx.fact(AT_EVALAI) or "{}")
    read = TypeAdapter(Terms).validate_python
    return {
        phase: read(
            {
                "embedding_dim": protocol["embedding_dim"],
                "ids": list_path(phase) if list_path(phase) in lists else "",
                **at_evalai.get(phase, {}),
            }
        )
        for phase, protocol in announced(tx.public_commitments()).items()
    }


def methods(tx: Transaction, codename: str) -> dict[int, Method]:
    """Return what participants say of a phase's submissions, by submission pk, as far as it may be shown.

    A submission that is private now is left out, even if the phase's rules keep its value on the board, and so are those of a team whose
    name was removed.
    """
    removed = pseudonyms(tx)
    return {
        row.pk: Method(
            name=row.method or "",
            project_url=row.project_url or "",
            publication_url=row.publication_url or "",
        )
        for row in tx.submissions(COUNTED | {State.SCORED}, phase=codename)
        if row.public_now and row.team_key not in removed
    }


def attestation_files(tx: Transaction) -> dict[str, bytes]:
    """Return the files with which the challenge can be checked: commitments, receipts, public ids, and what was revealed."""
    files = {
        commitments.PATH: commitments.commitment_file(tx),
        receipts.PATH: receipts.receipts_file(tx),
        **id_lists.files(tx),
    }
    for revealed in tx.reveals().values():
        files |= {path: text.encode() for path, text in revealed.items()}
    return {path: content for path, content in files.items() if content is not None}


def make_boards(inputs: Inputs) -> PendingBoards:
    """Make the new boards; this function is pure."""
    new: list[Board] = []
    sites = []
    for site in inputs.site.phases:
        snapshot = inputs.snapshots.get(site.codename)
        following = None
        if snapshot is not None:
            replicates = snapshot.rules.replicates
            following = boards.next_board(
                snapshot, site.history, at=inputs.preconditions.at, replicates=replicates
            )
        made = () if following is None else (following,)
        new += made
        sites.append(replace(site, history=(*site.history, *made)))
    return PendingBoards(
        site=replace(inputs.site, phases=tuple(sites)), new=tuple(new), preconditions=inputs.preconditions
    )


def _rules_so_far(configuration: Configuration, codename: str, history: tuple[Board, ...]) -> Rules:
    """Return the rules of a phase without a record: those of its latest board and, for what that did not keep, of the configuration."""
    rules = rules_of(configuration, codename).for_board(epsilon=configuration.scoring.epsilon, chosen={})
    return history[-1].rules_then(rules) if history else rules


def keep_boards(tx: Transaction, pending: PendingBoards) -> bool:
    """Store the new boards; what is pushed is made from the stored ones.

    Returns:
        False, with nothing stored, if meanwhile somebody else made a board, a phase was frozen, thawed, rescored or revealed, or a name was
        removed, because the board would ignore that change.
    """
    phases = [phase.codename for phase in pending.site.phases]
    if assumptions(tx, phases) != pending.preconditions.assumed:
        return False
    for board in pending.new:
        tx.save_board(board.phase, board.sequence, boards.to_json(board))
    return True


def make_site(configuration: Configuration, phases: tuple[PhaseSite, ...], *, committed: bool) -> Site:
    """Return what the whole site shows; ``committed`` says that a commitment is published with it."""
    server, challenge = configuration.evalai.server, configuration.evalai.challenge
    return Site(
        title=configuration.challenge.title,
        phases=phases,
        publish=frozenset(configuration.leaderboard.publish),
        link=f"{server}/web/challenges/challenge-page/{challenge}/overview",
        repository=web_address(configuration.leaderboard.repository) or "",
        page=configuration.leaderboard.page,
        committed=committed,
    )


class PublishAct(Act[Publisher, Result]):
    """An act of a publish cycle.

    Args:
        context: The worker's surroundings.
        generation: The cycle's number, for callers that wait for it.
        tries: How many cycles in a row failed before this one.
    """

    def __init__(self, context: Context, generation: int, *, tries: int) -> None:
        self._context = context
        self._generation = generation
        self._tries = tries

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Tell callers that wait for the cycle and, if failures go on, the organizer; the cycle is made again."""
        tx.fail_publish(self._generation, error)
        if isinstance(error, OrganizerError) or self._tries + 1 >= VAIN_TRIES:
            self._context.report(tx, "leaderboard.push", error, now=now)


class MakeBoards(PublishAct[PendingBoards]):
    """Register what decides the boards, make the new ones, and store them.

    Args:
        context: The worker's surroundings.
        generation: The cycle's number.
        history: Boards so far.
        fold: Everything that is registered.
        tries: How many cycles in a row failed before this one.
    """

    name = "boards"
    what: ClassVar[str] = "The making of boards"
    time_out_s = 900.0  # no network is involved, but a large challenge has much to compute

    def __init__(
        self,
        context: Context,
        generation: int,
        history: BoardHistory,
        fold: RegisterFold,
        *,
        tries: int,
    ) -> None:
        super().__init__(context, generation, tries=tries)
        self._history = history
        self._fold = fold
        self._inputs: Inputs | None = None
        self.kept = False

    def intent(self, tx: Transaction, now: datetime) -> None:
        """Register and read what decides the boards."""
        context = self._context
        configuration = context.configuration
        self._inputs = read_inputs(
            tx, configuration, configuration.phases, self._history, self._fold, now=now
        )
        for phase, error in self._inputs.damaged.items():
            context.report(tx, alert_key(phase), error, now=now)

    def perform(self, resource: Publisher) -> PendingBoards:
        """Compute the boards."""
        if self._inputs is None:
            raise RuntimeError("boards are made of what was read")
        return make_boards(self._inputs)

    def outcome(self, tx: Transaction, result: PendingBoards, now: datetime) -> None:
        """Store the boards, unless a decision was recorded meanwhile."""
        self.kept = keep_boards(tx, result)
