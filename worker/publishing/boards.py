"""From score cells to boards: what a publish cycle reads, the boards that follow from it, and how they are stored."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from pydantic import TypeAdapter

from leaderboard import Board, Decision, Method, PhaseSite, PhaseSnapshot, Rules, Site, Terms
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
from worker.fairness.membership import FACT, pseudonyms
from worker.fairness.register import LATEST, RegisterFold, register
from worker.fairness.signing import Signer, signer
from worker.participant.challenge import announced, list_path
from worker.publishing.board_history import BoardHistory
from worker.publishing.last_push import last_commit
from worker.runtime import Act, Result
from worker.state import AT_EVALAI, COUNTED, LOG_UNSEEN, REVEALED, PhaseRow, State, SubmissionRow, Transaction

VAIN_TRIES = 3  # after which the organizer is told


@dataclass(frozen=True, kw_only=True)
class Preconditions:
    """What a publish cycle assumes until it ends; a change meanwhile makes the cycle void, or requires another one.

    Attributes:
        generation: The cycle publishes everything that was requested up to this number.
        posted: Submissions whose answers EvalAI has and that no board includes yet.
        attestations: Commitments, receipts, public ids and reveals: path to content.
        records: Phase to its record.
        revealed_at: When something was last revealed.
        removed: The team names that were removed.
        signer: The key that signs what is pushed.
        at: When all of this was read.
        last: The commit that was last pushed to the configured branch; None before the first.
        restored: Whether the state may lack what is in the repository, because it comes from a backup.
    """

    generation: int
    posted: tuple[SubmissionRow, ...]
    attestations: Mapping[str, bytes]
    records: Mapping[str, PhaseRow | None]
    revealed_at: str | None
    removed: str | None
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
        configuration: The checked configuration.
        snapshots: Phase to what decides its board now.
        damaged: Phase without a snapshot to the reason: its record cannot be read.
        histories: Phase to its boards so far.
        methods: Phase to what participants say of its submissions, by submission pk.
        decisions: Phase to what was decided in it, see :func:`worker.fairness.decisions.public_decisions`.
        terms: Phase to what a submission must have.
        revealed: The phases that were revealed.
        withheld: The phases that withhold their values.
        preconditions: What the cycle assumes.
    """

    configuration: Configuration
    snapshots: Mapping[str, PhaseSnapshot]
    damaged: Mapping[str, NeucoError]
    histories: Mapping[str, tuple[Board, ...]]
    methods: Mapping[str, Mapping[int, Method]]
    decisions: Mapping[str, tuple[tuple[Decision, ...], frozenset[int]]]
    terms: Mapping[str, Terms]
    revealed: frozenset[str]
    withheld: frozenset[str]
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
    intact = [name for name in phases if name not in damaged]
    made = ((name, folds.phase(name).snapshot(LATEST)) for name in intact)
    snapshots = {name: snapshot for name, snapshot in made if snapshot is not None}
    return Inputs(
        configuration=configuration,
        snapshots=snapshots,
        damaged=damaged,
        histories={name: history.read(tx, name) for name in phases},
        methods={name: methods(tx, name) for name in phases},
        decisions={name: public_decisions(folds.phase(name)) for name in phases},
        terms=_terms(tx),
        revealed=tx.revealed_phases(),
        withheld=frozenset(
            name for name in snapshots if name != closing and folds.phase(name).withholds(LATEST)
        ),
        preconditions=Preconditions(
            generation=tx.requested_publish(),
            posted=tuple(tx.submissions([State.POSTED])),
            attestations=attestation_files(tx),
            records={name: tx.phase_record(name) for name in phases},
            revealed_at=tx.fact(REVEALED),
            removed=tx.fact(FACT),
            signer=signer(tx),
            at=at,
            last=last_commit(tx, configuration),
            restored=tx.fact(LOG_UNSEEN) is not None,
        ),
    )


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
    """Make the new boards; this function is pure.

    A frozen phase gets none, and neither does one that withholds its values or whose record is damaged; its latest board stays.
    """
    new: list[Board] = []
    sites = []
    for codename, history in inputs.histories.items():
        phase, record = inputs.snapshots.get(codename), inputs.preconditions.records[codename]
        frozen_at = record.frozen_at if record is not None else None
        following = None
        withheld = codename in inputs.withheld
        if phase is not None and frozen_at is None and not withheld:
            replicates = phase.rules.replicates
            following = boards.next_board(phase, history, at=inputs.preconditions.at, replicates=replicates)
        made = () if following is None else (following,)
        new += made
        boards_so_far = (*history, *made)
        decisions, only_if_shown = inputs.decisions[codename]
        sites.append(
            PhaseSite(
                codename=codename,
                title=codename,
                rules=_rules_so_far(inputs, codename) if phase is None else phase.rules,
                history=boards_so_far,
                waiting=waiting_teams(phase) if withheld and phase is not None else None,
                revealed=codename in inputs.revealed,
                frozen_at=frozen_at,
                methods=_of_board(inputs.methods[codename], boards_so_far),
                terms=inputs.terms.get(codename),
                decisions=decisions,
                only_if_shown=only_if_shown,
            )
        )
    committed = commitments.PATH in inputs.preconditions.attestations
    site = make_site(inputs.configuration, tuple(sites), committed=committed)
    return PendingBoards(site=site, new=tuple(new), preconditions=inputs.preconditions)


def _of_board(methods: Mapping[int, Method], history: tuple[Board, ...]) -> dict[int, Method]:
    """Return what participants say of the newest board's submissions."""
    shown = [row.submission for row in history[-1].standings] if history else []
    return {submission: methods[submission] for submission in shown if submission in methods}


def _rules_so_far(inputs: Inputs, codename: str) -> Rules:
    """Return the rules of a phase without a record: those of its latest board and, for what that did not keep, of the configuration."""
    configuration, history = inputs.configuration, inputs.histories[codename]
    rules = rules_of(configuration, codename).for_board(epsilon=configuration.scoring.epsilon, chosen={})
    return history[-1].rules_then(rules) if history else rules


def keep_boards(tx: Transaction, pending: PendingBoards) -> bool:
    """Store the new boards; what is pushed is made from the stored ones.

    Returns:
        False, with nothing stored, if meanwhile somebody else made a board, a phase was frozen, thawed, rescored or revealed, or a name was
        removed, because the board would ignore that change.
    """
    made = {board.phase for board in pending.new}
    for site in pending.site.phases:
        if tx.last_board(site.codename) != len(site.history) - (site.codename in made):
            return False
    expected = pending.preconditions
    if made and (tx.fact(REVEALED), tx.fact(FACT)) != (expected.revealed_at, expected.removed):
        return False
    if any(tx.phase_record(name) != pending.preconditions.records[name] for name in made):
        return False
    for board in pending.new:
        tx.add_board(board.phase, board.sequence, boards.to_json(board))
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
        self._inputs = read_inputs(
            tx, context.configuration, context.phases, self._history, self._fold, now=now
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
