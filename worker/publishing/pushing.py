"""From stored boards to a pushed commit.

Each waits in a folder of its own in the state directory, which is removed when the content is pushed. So a failed push continues where it
stopped, and each push takes a limited time.
"""

from __future__ import annotations

import shutil
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar

from leaderboard.git import OWN_FOLDERS, README, Files, Published, Publisher, PublisherSettings
from leaderboard.rendering import render
from scoring.errors import NeucoError
from worker.challenge.configuration import Configuration
from worker.challenge.context import Context
from worker.fairness import commitments, receipts, signing
from worker.fairness.disclosure import BRANCH
from worker.fairness.signing import CommitSigner, Signer
from worker.publishing import changes
from worker.publishing.beacon import record_commitments
from worker.publishing.boards import PendingBoards, PublishAct
from worker.publishing.changes import HISTORY
from worker.publishing.last_push import record_commit
from worker.state import Completed, State, Transaction

FOLDER = "published"
AT_ONCE_BYTES = 150_000_000  # in one push, because the push of the board waits for it


def outbox(configuration: Configuration) -> Path:
    """Return the folder in which contents wait."""
    return configuration.state_dir / FOLDER


def waiting(configuration: Configuration) -> list[Path]:
    """Return the waiting contents: a folder for each, named by its hash."""
    folder = outbox(configuration)
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def push_contents(publisher: Publisher, configuration: Configuration, signer: Signer) -> None:
    """Push the waiting contents, each in a commit of its own, so that only one is in memory at a time.

    Raises:
        NeucoError: As :meth:`leaderboard.git.publisher.Publisher.publish`.
    """
    contents, pushed = waiting(configuration), 0
    if not contents:
        return
    branch = publisher.for_branch(BRANCH)
    for folder in contents:
        if pushed >= AT_ONCE_BYTES:
            return
        parts = {part.name: part.read_bytes() for part in folder.iterdir()}
        message = f"Publish the content {folder.name[:12]}\n"
        branch.publish(partial(_parts, parts), message, signer=CommitSigner(signer))
        shutil.rmtree(folder)
        pushed += sum(map(len, parts.values()))
    branch.discard()


def _parts(parts: Files, _existing: Files, _own: Files) -> Files:
    return parts


class PushBoard(PublishAct[Published]):
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

    def perform(self, resource: Publisher) -> Published:
        """Render the site on the tip of the branch and push it, after the waiting contents."""
        push_contents(resource, self._context.configuration, self._pending.preconditions.signer)
        return push(resource, self._pending)

    def outcome(self, tx: Transaction, result: Published, now: datetime) -> None:
        """Record that the repository shows the boards."""
        record_push(tx, self._context.configuration, self._pending, result, now=now)

    def recorded(self, result: Published, now: datetime) -> None:
        """Log what was pushed."""
        if result.changed:
            commit = result.commit
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


def push(publisher: Publisher, pending: PendingBoards) -> Published:
    """Render the site on the tip of the branch and push it.

    Raises:
        LogIsAhead: If the branch has receipts that the state lacks.
        InfrastructureError: If it has commitments that the state lacks.
        NeucoError: As :meth:`leaderboard.git.publisher.Publisher.publish`.
    """
    preconditions = pending.preconditions
    return publisher.publish(
        partial(_files, pending),
        partial(changes.message, pending.site),
        last=preconditions.last,
        folders=OWN_FOLDERS,
        signer=CommitSigner(preconditions.signer),
    )


def _files(pending: PendingBoards, existing: Files, own: Files) -> Files:
    """Return the files that the branch should have.

    Args:
        pending: What is published.
        existing: The files in the branch.
        own: The files as the challenge published them last. A state from a backup may not know the key that has signed the last ones.
    """
    preconditions = pending.preconditions
    attestations = preconditions.attestations
    public = existing if preconditions.restored else own
    commitments.check_growth(public.get(commitments.PATH), attestations.get(commitments.PATH))
    keys = signing.keys_of(attestations.get(commitments.PATH))
    receipts.check_growth(public.get(receipts.PATH), attestations.get(receipts.PATH), keys=keys)
    site = render(pending.site, readme=existing.get(README), history=own.get(HISTORY))
    return {**site, **attestations}


def record_push(
    tx: Transaction,
    configuration: Configuration,
    pending: PendingBoards,
    published: Published,
    *,
    now: datetime,
) -> None:
    """Record that the repository shows what was pending."""
    record_commit(tx, configuration, published, now=now)
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
