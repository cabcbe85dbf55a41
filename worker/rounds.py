"""Rounds of publishing: from values read out of the database to boards, and from boards to a pushed commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from leaderboard import board as boards
from leaderboard.files import render
from leaderboard.publisher import Published, Publisher, PublisherSettings
from leaderboard.snapshot import Board, PhaseSite, PhaseSnapshot, Site
from worker import changes
from worker.board_history import BoardHistory
from worker.changes import HISTORY
from worker.configuration import Configuration
from worker.fairness import commitments, receipts
from worker.intake import board_facts
from worker.snapshots import snapshot
from worker.state import LOG_UNSEEN, PROMISED, REVEALED, Tracked, Transaction
from worker.states import State

README = "README.md"
PUSHED_COMMIT = "pushed_commit"


@dataclass(frozen=True, kw_only=True)
class Basis:
    """What a round of publishing stands on until it is over; what has changed meanwhile makes it void, or asks for another one.

    Attributes:
        posted: Submissions whose answers EvalAI has and that no board takes into account yet.
        promises: Commitments, receipts and reveals: path to content.
        tip: The commit that was pushed last.
        records: Phase to its record.
        revealed_at: When something was revealed last.
    """

    posted: tuple[Tracked, ...]
    promises: Mapping[str, bytes]
    tip: str | None
    records: Mapping[str, Mapping[str, Any] | None]
    revealed_at: str | None


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What a round brings to the repository."""

    site: Site
    new: tuple[Board, ...]
    basis: Basis


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a round reads out of the database before it begins."""

    configuration: Configuration
    snapshots: tuple[PhaseSnapshot, ...]
    histories: Mapping[str, tuple[Board, ...]]
    revealed: frozenset[str]
    promised_at: datetime | None
    basis: Basis


def read_material(
    tx: Transaction, configuration: Configuration, phases: Collection[str], history: BoardHistory
) -> Material:
    """Read everything that a round of publishing needs: of the database alone, no file of a phase is looked at."""
    promised = tx.fact(PROMISED)
    return Material(
        configuration=configuration,
        snapshots=tuple(snapshot(tx, configuration, name) for name in phases),
        histories={name: history.read(tx, name) for name in phases},
        revealed=frozenset(tx.reveals()),
        promised_at=datetime.fromisoformat(promised) if promised is not None else None,
        basis=Basis(
            posted=tuple(tx.submissions([State.POSTED])),
            promises=promise_files(tx),
            tip=tx.fact(PUSHED_COMMIT),
            records={name: tx.phase_record(name) for name in phases},
            revealed_at=tx.fact(REVEALED),
        ),
    )


def promise_files(tx: Transaction) -> dict[str, bytes]:
    """Return the files that make the challenge checkable: commitments, receipts, and what was revealed."""
    files = {commitments.PATH: commitments.commitment_file(tx), receipts.PATH: receipts.receipts_file(tx)}
    for revealed in tx.reveals().values():
        files |= {path: text.encode() for path, text in revealed.items()}
    return {path: content for path, content in files.items() if content is not None}


def compute(material: Material, now: datetime) -> Draft:
    """Make the boards that follow; pure. A frozen phase gets none.

    A board is never dated before the scores that it shows, whatever another machine's clock or ours says: who checks it looks for the
    scores that stood at its time.
    """
    now = max(now, material.promised_at or now)
    new = []
    sites = []
    for phase in material.snapshots:
        history, record = material.histories[phase.codename], material.basis.records[phase.codename]
        frozen_at = record["frozen_at"] if record is not None else None
        if frozen_at is None:
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
    return Draft(site=site, new=tuple(new), basis=material.basis)


def keep_boards(tx: Transaction, draft: Draft) -> bool:
    """Store the new boards; what is pushed is made from the stored ones.

    Returns:
        False, and nothing is stored, if since the draft was read somebody else made a board, or a phase was frozen, thawed, rescored or
        revealed: a board would come after what it knows nothing of.
    """
    made = {board.phase for board in draft.new}
    for site in draft.site.phases:
        if tx.last_board(site.codename) != len(site.history) - (site.codename in made):
            return False
    if made and tx.fact(REVEALED) != draft.basis.revealed_at:
        return False
    if any(tx.phase_record(name) != draft.basis.records[name] for name in made):
        return False
    for board in draft.new:
        tx.add_board(board.phase, board.sequence, boards.to_json(board), made_at=board.made_at)
        tx.promise_time(board.made_at)
    return True


def push(publisher: Publisher, draft: Draft) -> Published:
    """Render the site on the branch's tip and push it.

    Raises:
        LogIsAhead: If the branch has receipts that the draft lacks.
        InfrastructureError: If it has commitments that the draft lacks.
        NeucoError: As :meth:`leaderboard.publisher.Publisher.publish`.
    """
    promises = draft.basis.promises

    def files(existing: Mapping[str, bytes]) -> Mapping[str, bytes]:
        commitments.check_growth(existing.get(commitments.PATH), promises.get(commitments.PATH))
        receipts.check_growth(existing.get(receipts.PATH), promises.get(receipts.PATH))
        rendered = render(draft.site, readme=existing.get(README), history=existing.get(HISTORY))
        return {**rendered, **promises}

    return publisher.publish(files, lambda before, after: changes.message(draft.site, before, after))


def record_push(tx: Transaction, draft: Draft, published: Published, *, now: datetime) -> None:
    """Record that the repository shows the draft.

    Another worker or a command may have pushed since the draft was read, and ours went over it, or its over ours: one more round shows
    everything.
    """
    if tx.fact(PUSHED_COMMIT) != draft.basis.tip:
        tx.ask_for_round()
    for known in draft.basis.posted:
        current = tx.get(known.pk)
        # What changed while the push was under way is not on the board yet.
        if current is not None and board_facts(current) == board_facts(known):
            tx.move(known.pk, State.POSTED, State.PUBLISHED)
    tx.set_fact(LOG_UNSEEN, None)
    tx.set_fact("pushed_at", now.isoformat())
    tx.set_fact(PUSHED_COMMIT, published.commit)
    tx.resolve_alert("leaderboard.push", now=now)


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
