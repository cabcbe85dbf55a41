"""Publishing: from the score matrix to a pushed board, without ever making scoring wait.

Two errands in a lane of their own: the board is computed from values read out of the database, then stored there (the history is ours, not
the repository's); then it is rendered and pushed. What is pushed is always made from the stored boards, so a push that was lost or
interrupted is simply made again.

The board of a phase whose scores stand on other tasks or another protocol than its files (see :func:`worker.snapshots.is_overtaken`) stands
as it is, and what was answered meanwhile is not taken for published.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from leaderboard import board as boards
from leaderboard.files import render
from leaderboard.publisher import Published, Publisher, PublisherSettings, commit_message
from leaderboard.snapshot import Board, PhaseSite, PhaseSnapshot, Site
from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from worker.board_history import BoardHistory
from worker.challenge import PhaseSetup, tasks_changed
from worker.configuration import Configuration
from worker.context import Context, seconds
from worker.fairness import commitments, receipts
from worker.intake import board_facts
from worker.lanes import Lane
from worker.office import Office
from worker.sharing import PUBLISHER
from worker.snapshots import is_overtaken, snapshot
from worker.state import Tracked, Transaction
from worker.states import State

README = "README.md"
HISTORY = "leaderboard/history.jsonl"


_Wishes = tuple[int, str | None]
"""What asked for rounds so far: this process's count, and the mark that commands leave in the database."""


@dataclass(frozen=True, kw_only=True)
class _Draft:
    """What one round of publishing works on."""

    site: Site
    new: tuple[Board, ...]
    submissions: tuple[Tracked, ...]
    promises: Mapping[str, bytes]


class Publishing:
    """Keeps the repository in step with the score matrix.

    Args:
        context: The worker's surroundings.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._publisher = Publisher(publisher_settings(context.configuration))
        self._history = BoardHistory()
        self._lane: Lane[Any] = Lane("git", context.wake)
        self._begun_at: datetime | None = None
        self._not_before: datetime | None = None
        self._draft: _Draft | None = None
        self._led = not context.sharing.shared
        self._closes_at: datetime | None = None  # the open receipts' moment; it can only come later than this
        self._wishes = 0  # for another round, of this process
        self._serving: _Wishes | None = None  # as they were when the round under way read the database
        self._served: _Wishes | None = None
        self.tries = 0
        self.last_error: NeucoError | None = None

    @property
    def busy(self) -> bool:
        """Whether a round is under way."""
        return self._lane.busy or self._draft is not None

    def _close_batch(self, now: datetime) -> None:
        """Publish the open receipts when their fixed moment has come, whether or not there are any."""
        if self._closes_at is not None and now < self._closes_at:
            return
        every_s = self._context.configuration.leaderboard.receipts_every
        with self._context.store.read() as tx:
            entries, lines = tx.commitments(), tx.batches()
        if not entries:
            return
        due = receipts.due_at(datetime.fromisoformat(entries[0][0]["made_at"]), len(lines), every_s)
        if due > now:
            self._closes_at = due
            return
        with self._context.store.write() as tx:
            if len(tx.batches()) == len(lines):  # else a reveal has published them in this moment
                receipts.close_batch(tx, made_at=due)
        self.renew()

    def due(self) -> bool:
        """Tell whether the repository may be behind."""
        with self._context.store.read() as tx:
            behind = self._led and self._served != self._wanted(tx)
            return behind or bool(_answered(tx, self._context.phases))

    def collect(self, now: datetime) -> bool:
        """Take in a finished computation or push."""
        return self._lane.collect(now)

    def step(self, now: datetime) -> bool:
        """Begin the next part of a round, if one is due."""
        if self._lane.busy or not self._leads(now):
            return False
        if self._draft is not None:
            draft = self._draft
            self._lane.start(lambda: self._push(draft), done=self._pushed, failed=self._failed)
            return True
        every = seconds(self._context.configuration.leaderboard.publish_every)
        if self._begun_at is not None and now - every < self._begun_at <= now:
            return False
        if self._not_before is not None and now < self._not_before <= now + timedelta(seconds=120):
            return False
        self._close_batch(now)
        if not self.due():
            return False
        with self._context.store.read() as tx:
            material = read_material(tx, self._context.configuration, self._context.phases, self._history)
            self._serving = self._wanted(tx)
        self._begun_at = now
        self._lane.start(lambda: compute(material, now), done=self._computed, failed=self._failed)
        return True

    def _leads(self, now: datetime) -> bool:
        """Tell whether pushing is ours; whoever becomes the publisher begins with a round of its own."""
        leads = self._context.sharing.leads(PUBLISHER, now)
        if leads != self._led:
            self._draft, self._led = None, leads
            self.renew()
        return leads

    def reload(self) -> None:
        """Take up a changed configuration with the next round."""
        self._publisher = Publisher(publisher_settings(self._context.configuration))
        self._closes_at = None
        self.renew()

    def renew(self) -> None:
        """Make a round even if no submission asks for one, and another one if one is under way: what boards are made of has changed."""
        self._wishes += 1

    def _wanted(self, tx: Transaction) -> _Wishes:
        return self._wishes, tx.round_asked()

    def stop(self) -> None:
        """Kill the git process that may be running, because the worker ends."""
        self._publisher.stop()

    def _computed(self, draft: _Draft, now: datetime) -> None:
        with self._context.store.write() as tx:
            kept = keep_boards(tx, draft)
        if kept:
            self._draft = draft
        else:
            self._begun_at = None  # somebody has frozen a phase meanwhile: at once once more

    def _push(self, draft: _Draft) -> Published:
        self._context.checkpoint("before call push")
        published = push(self._publisher, draft)
        self._context.checkpoint("after call push")
        return published

    def _pushed(self, published: Published, now: datetime) -> None:
        draft, self._draft = self._draft, None
        self.tries, self._not_before, self.last_error = 0, None, None
        self._served = self._serving
        with self._context.store.write() as tx:
            record_push(tx, draft, published, now=now)
        if published.changed:
            self._context.log.info("Board pushed.", event_key="board.pushed", commit=published.commit)

    def _failed(self, error: NeucoError, now: datetime) -> None:
        self._draft = None
        if isinstance(error, receipts.LogIsAhead):
            self._context.log.warning(error.message, event_key=error.code, lines=len(error.lines))
            with self._context.store.write() as tx:
                receipts.take_over(tx, error.lines)
            self._begun_at, self._closes_at = None, None
            return
        self.last_error = error
        self._not_before = self._context.retry_at(now, self.tries)
        self._begun_at = None
        self.tries += 1
        self._context.log.warning(error.sentence, event_key=error.code, tries=self.tries)
        if isinstance(error, OrganizerError) or self.tries >= 3:
            self._context.trouble("leaderboard.push", error, now=now)


@dataclass(frozen=True, kw_only=True)
class _Material:
    """What a round reads out of the database before it begins."""

    configuration: Configuration
    posted: tuple[Tracked, ...]
    snapshots: tuple[PhaseSnapshot, ...]
    histories: Mapping[str, tuple[Board, ...]]
    frozen: Mapping[str, datetime | None]
    overtaken: frozenset[str]
    promises: Mapping[str, bytes]
    revealed: frozenset[str]


def read_material(
    tx: Transaction, configuration: Configuration, phases: Mapping[str, PhaseSetup], history: BoardHistory
) -> _Material:
    """Read everything that a round of publishing needs."""
    return _Material(
        configuration=configuration,
        posted=_answered(tx, phases),
        snapshots=tuple(snapshot(tx, configuration, setup) for setup in phases.values()),
        histories={name: history.read(tx, name) for name in phases},
        frozen={name: _frozen_at(tx, name) for name in phases},
        overtaken=frozenset(name for name, setup in phases.items() if is_overtaken(tx, setup)),
        promises=promise_files(tx),
        revealed=frozenset(tx.reveals()),
    )


def promise_files(tx: Transaction) -> dict[str, bytes]:
    """Return the files that make the challenge checkable: commitments, receipts, and what was revealed."""
    files = {commitments.PATH: commitments.commitment_file(tx), receipts.PATH: receipts.receipts_file(tx)}
    for revealed in tx.reveals().values():
        files |= {path: text.encode() for path, text in revealed.items()}
    return {path: content for path, content in files.items() if content is not None}


def compute(material: _Material, now: datetime) -> _Draft:
    """Make the boards that follow; pure. A frozen phase gets none, nor does one whose files its scores do not stand on."""
    new = []
    sites = []
    for phase in material.snapshots:
        history, frozen_at = material.histories[phase.codename], material.frozen[phase.codename]
        if frozen_at is None and phase.codename not in material.overtaken:
            following = boards.next_board(phase, history, at=now)
            if following is not None:
                new.append(following)
                history = (*history, following)
        sites.append(
            PhaseSite(
                codename=phase.codename,
                title=phase.title,
                rules=phase.rules,
                history=history,
                snapshot=phase
                if phase.codename in material.revealed or material.configuration.leaderboard.publish
                else None,
                revealed=phase.codename in material.revealed,
                frozen_at=frozen_at,
            )
        )
    site = make_site(material.configuration, tuple(sites))
    return _Draft(site=site, new=tuple(new), submissions=material.posted, promises=material.promises)


def keep_boards(tx: Transaction, draft: _Draft) -> bool:
    """Store the new boards; what is pushed is made from the stored ones.

    Returns:
        False, and nothing is stored, if one of their phases was frozen meanwhile.
    """
    if any(_frozen_at(tx, board.phase) is not None for board in draft.new):
        return False
    for board in draft.new:
        tx.add_board(board.phase, board.sequence, boards.to_json(board), made_at=board.made_at)
    return True


def push(publisher: Publisher, draft: _Draft) -> Published:
    """Render the site on the branch's tip and push it.

    Raises:
        LogIsAhead: If the branch has receipts that the draft lacks.
        NeucoError: As :meth:`leaderboard.publisher.Publisher.publish`.
    """

    def files(existing: Mapping[str, bytes]) -> Mapping[str, bytes]:
        receipts.check_growth(existing.get(receipts.PATH), draft.promises.get(receipts.PATH))
        rendered = render(draft.site, readme=existing.get(README), history=existing.get(HISTORY))
        return {**rendered, **draft.promises}

    return publisher.publish(files, commit_message(draft.site, unpublished(draft.site, draft.new)))


def record_push(tx: Transaction, draft: _Draft | None, published: Published, *, now: datetime) -> None:
    """Record that the repository shows the draft."""
    for known in draft.submissions if draft is not None else ():
        current = tx.get(known.pk)
        # What changed while the push was under way is not on the board yet.
        if current is not None and board_facts(current) == board_facts(known):
            tx.move(known.pk, State.POSTED, State.PUBLISHED)
    tx.set_fact("pushed_at", now.isoformat())
    tx.set_fact("pushed_commit", published.commit)
    tx.resolve_alert("leaderboard.push", now=now)


def publish_now(office: Office, *, about: Collection[str] | None = None) -> Published:
    """Compute and push the boards at once, whether or not a daemon runs.

    Args:
        office: The challenge.
        about: The phases that matter, all by default; the board of another one may have to stand as it is.

    Raises:
        OrganizerError: If the scores of a phase that matters stand on other tasks or another protocol than its files.
        NeucoError: As :meth:`leaderboard.publisher.Publisher.publish`.
    """
    phases = office.phases()
    publisher = Publisher(publisher_settings(office.configuration))
    while True:
        material, draft = _make_draft(office, phases, about=phases if about is None else about)
        with office.store.write() as tx:
            _keep_draft(tx, material, draft)
        try:
            published = push(publisher, draft)
            break
        except receipts.LogIsAhead as error:
            with office.store.write() as tx:
                receipts.take_over(tx, error.lines)
    with office.store.write() as tx:
        record_push(tx, draft, published, now=office.now)
    return published


def freeze(office: Office, phase: str) -> None:
    """Close a phase on the board that is due now: what was answered until this moment stands on it, nothing that comes later.

    Raises:
        OrganizerError: If there is no such phase, or its scores stand on other tasks or another protocol than its files.
        InfrastructureError: If the daemon made a board at the same moment.
    """
    setup = office.phase(phase)
    material, draft = _make_draft(office, {phase: setup}, about=(phase,))
    with office.store.write() as tx:
        _keep_draft(tx, material, draft)
        if tx.phase_record(phase) is None:
            tx.record_phase(phase, protocol_hash=setup.protocol.hash, tasks=setup.tasks)
        tx.freeze_phase(phase, at=office.now)
        tx.ask_for_round()
        tx.log("frozen", actor=office.actor, now=office.now, phase=phase)


def thaw(office: Office, phase: str) -> None:
    """Let a phase's board move again.

    Raises:
        OrganizerError: If there is no such phase.
    """
    office.phase(phase)
    with office.store.write() as tx:
        tx.freeze_phase(phase, at=None)
        tx.ask_for_round()
        tx.log("thawed", actor=office.actor, now=office.now, phase=phase)


def _make_draft(
    office: Office, phases: Mapping[str, PhaseSetup], *, about: Collection[str]
) -> tuple[_Material, _Draft]:
    with office.store.read() as tx:
        material = read_material(tx, office.configuration, phases, BoardHistory())
    for codename in about:
        if codename in material.overtaken:
            raise tasks_changed(codename)
    return material, compute(material, office.now)


def _keep_draft(tx: Transaction, material: _Material, draft: _Draft) -> None:
    moved = any(tx.last_board(name) != len(history) for name, history in material.histories.items())
    if moved or not keep_boards(tx, draft):
        raise InfrastructureError(
            "The daemon made a board at the same moment.", cure="Try again.", code="board.busy"
        )


def unpublished(site: Site, new: tuple[Board, ...]) -> tuple[Board, ...]:
    """Return the boards that a commit message speaks of: the new ones, or the latest if an earlier push was lost."""
    return new or tuple(phase.history[-1] for phase in site.phases if phase.history)


def publisher_settings(configuration: Configuration) -> PublisherSettings:
    """Say where and as whom to push.

    Raises:
        OrganizerError: If a secret is missing.
    """
    leaderboard = configuration.leaderboard
    token = configuration.secret(leaderboard.token, "leaderboard.token") if leaderboard.token else None
    return PublisherSettings(
        repository=configuration.repository_url,
        branch=leaderboard.branch,
        state_dir=configuration.state_dir / "leaderboard",
        token=token.get_secret_value() if token is not None else None,
        ssh_key=configuration.secret_path(leaderboard.ssh_key, "leaderboard.ssh_key")
        if leaderboard.ssh_key
        else None,
        known_hosts=(
            configuration.secret_path(leaderboard.known_hosts, "leaderboard.known_hosts")
            if leaderboard.known_hosts
            else None
        ),
    )


def make_site(configuration: Configuration, phases: tuple[PhaseSite, ...]) -> Site:
    """Say what the whole site shows."""
    server, challenge = configuration.evalai.server, configuration.evalai.challenge
    return Site(
        title=configuration.challenge.title,
        phases=phases,
        publish=frozenset(configuration.leaderboard.publish),
        link=f"{server}/web/challenges/challenge-page/{challenge}/overview",
    )


def _answered(tx: Transaction, phases: Mapping[str, PhaseSetup]) -> tuple[Tracked, ...]:
    """Return the submissions whose answers EvalAI has and that a round of publishing can bring onto their boards, or keep off."""
    posted = tx.submissions([State.POSTED])
    if not posted:
        return ()
    standing = {name for name, setup in phases.items() if is_overtaken(tx, setup)}
    return tuple(known for known in posted if known.phase not in standing)


def _frozen_at(tx: Transaction, phase: str) -> datetime | None:
    record = tx.phase_record(phase)
    return None if record is None else record["frozen_at"]
