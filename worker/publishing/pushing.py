"""From stored boards to a pushed commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import ClassVar

from leaderboard.git import Files, Published, Publisher, PublisherSettings
from leaderboard.rendering import render
from scoring.errors import NeucoError
from worker.challenge.configuration import Configuration
from worker.challenge.context import Context
from worker.fairness import commitments, receipts, seal, succession
from worker.publishing import changes
from worker.publishing.beacon import record_commitments
from worker.publishing.boards import PendingBoards, PublishAct
from worker.publishing.changes import HISTORY
from worker.publishing.contents import push_contents
from worker.publishing.last_push import record_commit
from worker.state import Completed, State, Transaction

README = "README.md"


@dataclass(frozen=True, kw_only=True)
class Pushed:
    """The result of a push.

    Attributes:
        published: What the branch shows now.
        spoilt: The files in it that differed from those that the challenge had sealed, and that this push restored.
    """

    published: Published
    spoilt: frozenset[str]


class PushBoard(PublishAct[Pushed]):
    """Push the stored boards to the repository.

    Args:
        context: The worker's surroundings.
        pending: What the repository lacks.
        tries: How many cycles in a row failed before this one.
    """

    name = "push"
    what: ClassVar[str] = "The push of the leaderboard"
    time_out_s = 130.0  # in total; a single git process has less

    def __init__(self, context: Context, pending: PendingBoards, *, tries: int) -> None:
        super().__init__(context, pending.preconditions.generation, tries=tries)
        self._pending = pending

    def perform(self, resource: Publisher) -> Pushed:
        """Render the site on the tip of the branch and push it, after the waiting contents."""
        push_contents(resource, self._context.configuration)
        return push(resource, self._pending)

    def outcome(self, tx: Transaction, result: Pushed, now: datetime) -> None:
        """Record that the repository shows the boards."""
        record_push(tx, self._context.configuration, self._pending, result, now=now)

    def recorded(self, result: Pushed, now: datetime) -> None:
        """Log what was pushed."""
        if result.published.changed:
            commit = result.published.commit
            self._context.log.info("Board pushed.", event_key="board.pushed", commit=commit)

    def failure(self, tx: Transaction, error: NeucoError, now: datetime) -> None:
        """Add to the state what it lacks of the public log; report every other failure."""
        if not isinstance(error, receipts.LogIsAhead):
            super().failure(tx, error, now)
        elif receipts.take_over(tx, error, now=now):
            self._context.log.warning(error.message, event_key=error.code, lines=len(error.lines))

    def give_up(self, resource: Publisher) -> None:
        """Kill git and all its child processes; this publisher accepts no more work."""
        resource.stop()


def push(publisher: Publisher, pending: PendingBoards) -> Pushed:
    """Render the site on the tip of the branch and push it.

    Raises:
        LogIsAhead: If the branch has receipts that the state lacks.
        InfrastructureError: If it has commitments that the state lacks.
        NeucoError: As :meth:`leaderboard.git.publisher.Publisher.publish`.
    """
    rendering = _Rendering(pending, publisher)
    published = publisher.publish(rendering.files, rendering.message, last=pending.preconditions.last)
    return Pushed(published=published, spoilt=rendering.spoilt - {README})


class _Rendering:
    """Turns the branch's files and the pending boards into the new files; called again when the tip has moved."""

    def __init__(self, pending: PendingBoards, publisher: Publisher) -> None:
        self._pending = pending
        self._publisher = publisher
        self._keys = succession.keys_of(pending.preconditions.attestations.get(commitments.PATH))
        self.spoilt: frozenset[str] = frozenset()

    def files(self, existing: Files) -> Files:
        """Return the files that the branch should have."""
        preconditions = self._pending.preconditions
        attestations = preconditions.attestations
        log = attestations.get(receipts.PATH)
        commitments.check_growth(
            existing.get(commitments.PATH),
            attestations.get(commitments.PATH),
            settled=preconditions.last is not None and not preconditions.restored,
        )
        receipts.check_growth(existing.get(receipts.PATH), log, keys=self._keys)
        site = render(self._pending.site, readme=existing.get(README), history=self._history(existing))
        files = {**site, **attestations}
        sealed = seal.seal(
            files,
            existing.get(seal.PATH),
            head=receipts.head(log),
            signer=preconditions.signer,
            at=preconditions.at,
            keys=self._sealing,
        )
        return {**files, seal.PATH: sealed}

    @cached_property
    def _sealing(self) -> tuple[str, ...]:
        """Return the keys that may have sealed the branch: the newest, and that of our last push."""
        last = self._pending.preconditions.last
        if last is None or len(self._keys) < 2:
            return self._keys
        then = succession.keys_of(self._publisher.earlier(last, commitments.PATH))
        return (*(key for key in then[-1:] if key in self._keys), self._keys[-1])

    def _history(self, existing: Files) -> bytes | None:
        """Return the lines to continue: those in the branch, or those of our last commit if somebody else has changed them."""
        last = self._pending.preconditions.last
        if last is None or not self._keys or not {HISTORY, seal.PATH} & seal.spoilt(existing, self._sealing):
            return existing.get(HISTORY)
        return self._publisher.earlier(last, HISTORY)

    def message(self, before: Files, after: Files) -> str:
        """Describe what the commit changes."""
        self.spoilt = seal.spoilt(before, self._sealing)
        return changes.message(self._pending.site, before, after)


def record_push(
    tx: Transaction, configuration: Configuration, pending: PendingBoards, pushed: Pushed, *, now: datetime
) -> None:
    """Record that the repository shows what was pending."""
    published = pushed.published
    record_commit(tx, configuration, published, pushed.spoilt, now=now)
    for row in pending.preconditions.posted:
        current = tx.get(row.pk)
        # A change that came during the push is not on the board yet.
        if current is not None and current.board_facts == row.board_facts:
            tx.move(row.pk, State.POSTED, State.PUBLISHED)
    receipts.went_on(tx, now=now)
    tx.set_fact("pushed_at", now.isoformat())
    record_commitments(tx, pending.preconditions.attestations.get(commitments.PATH), now=now)
    generation = pending.preconditions.generation
    tx.complete_publish(Completed(generation=generation, commit=published.commit, changed=published.changed))
    tx.resolve_alert("leaderboard.push", now=now)


def publisher_settings(configuration: Configuration) -> PublisherSettings:
    """Return where to push, and as whom.

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
