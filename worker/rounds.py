"""Rounds of publishing: from values read out of the database to boards, and from boards to a pushed commit.

The board of a phase whose scores stand on other tasks or another protocol than its files (see :func:`worker.snapshots.is_overtaken`) stands
as it is, and what was answered meanwhile is not taken for published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from leaderboard import board as boards
from leaderboard.files import render
from leaderboard.publisher import Published, Publisher, PublisherSettings, commit_message
from leaderboard.snapshot import Board, PhaseSite, PhaseSnapshot, Site
from worker.board_history import BoardHistory
from worker.challenge import PhaseSetup
from worker.configuration import Configuration
from worker.fairness import commitments, receipts
from worker.intake import board_facts
from worker.snapshots import is_overtaken, snapshot
from worker.state import LOG_UNSEEN, Tracked, Transaction
from worker.states import State

README = "README.md"
HISTORY = "leaderboard/history.jsonl"


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What one round of publishing works on."""

    site: Site
    new: tuple[Board, ...]
    submissions: tuple[Tracked, ...]
    promises: Mapping[str, bytes]
    log_unseen: bool


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a round reads out of the database before it begins."""

    configuration: Configuration
    posted: tuple[Tracked, ...]
    snapshots: tuple[PhaseSnapshot, ...]
    histories: Mapping[str, tuple[Board, ...]]
    frozen: Mapping[str, datetime | None]
    overtaken: frozenset[str]
    promises: Mapping[str, bytes]
    log_unseen: bool
    revealed: frozenset[str]


def read_material(
    tx: Transaction, configuration: Configuration, phases: Mapping[str, PhaseSetup], history: BoardHistory
) -> Material:
    """Read everything that a round of publishing needs."""
    return Material(
        configuration=configuration,
        posted=answered(tx, phases),
        snapshots=tuple(snapshot(tx, configuration, setup) for setup in phases.values()),
        histories={name: history.read(tx, name) for name in phases},
        frozen={name: _frozen_at(tx, name) for name in phases},
        overtaken=frozenset(name for name, setup in phases.items() if is_overtaken(tx, setup)),
        promises=promise_files(tx),
        log_unseen=tx.fact(LOG_UNSEEN) is not None,
        revealed=frozenset(tx.reveals()),
    )


def promise_files(tx: Transaction) -> dict[str, bytes]:
    """Return the files that make the challenge checkable: commitments, receipts, and what was revealed."""
    files = {commitments.PATH: commitments.commitment_file(tx), receipts.PATH: receipts.receipts_file(tx)}
    for revealed in tx.reveals().values():
        files |= {path: text.encode() for path, text in revealed.items()}
    return {path: content for path, content in files.items() if content is not None}


def compute(material: Material, now: datetime) -> Draft:
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
    return Draft(
        site=site,
        new=tuple(new),
        submissions=material.posted,
        promises=material.promises,
        log_unseen=material.log_unseen,
    )


def keep_boards(tx: Transaction, draft: Draft) -> bool:
    """Store the new boards; what is pushed is made from the stored ones.

    Returns:
        False, and nothing is stored, if one of their phases was frozen meanwhile.
    """
    if any(_frozen_at(tx, board.phase) is not None for board in draft.new):
        return False
    for board in draft.new:
        tx.add_board(board.phase, board.sequence, boards.to_json(board), made_at=board.made_at)
    return True


def push(publisher: Publisher, draft: Draft) -> Published:
    """Render the site on the branch's tip and push it.

    Raises:
        LogIsAhead: If the branch has receipts that a restored state lacks.
        InfrastructureError: If it has commitments that the draft lacks.
        NeucoError: As :meth:`leaderboard.publisher.Publisher.publish`.
    """

    def files(existing: Mapping[str, bytes]) -> Mapping[str, bytes]:
        commitments.check_growth(existing.get(commitments.PATH), draft.promises.get(commitments.PATH))
        if draft.log_unseen:
            receipts.check_growth(existing.get(receipts.PATH), draft.promises.get(receipts.PATH))
        rendered = render(draft.site, readme=existing.get(README), history=existing.get(HISTORY))
        return {**rendered, **draft.promises}

    return publisher.publish(files, commit_message(draft.site, unpublished(draft.site, draft.new)))


def record_push(tx: Transaction, draft: Draft | None, published: Published, *, now: datetime) -> None:
    """Record that the repository shows the draft."""
    for known in draft.submissions if draft is not None else ():
        current = tx.get(known.pk)
        # What changed while the push was under way is not on the board yet.
        if current is not None and board_facts(current) == board_facts(known):
            tx.move(known.pk, State.POSTED, State.PUBLISHED)
    tx.set_fact(LOG_UNSEEN, None)
    tx.set_fact("pushed_at", now.isoformat())
    tx.set_fact("pushed_commit", published.commit)
    tx.resolve_alert("leaderboard.push", now=now)


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


def answered(tx: Transaction, phases: Mapping[str, PhaseSetup]) -> tuple[Tracked, ...]:
    """Return the submissions whose answers EvalAI has and that a round of publishing can bring onto their boards, or keep off."""
    posted = tx.submissions([State.POSTED])
    if not posted:
        return ()
    standing = {name for name, setup in phases.items() if is_overtaken(tx, setup)}
    return tuple(known for known in posted if known.phase not in standing)


def _frozen_at(tx: Transaction, phase: str) -> datetime | None:
    record = tx.phase_record(phase)
    return None if record is None else record["frozen_at"]
