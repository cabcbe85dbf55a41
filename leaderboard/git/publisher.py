"""Push the published files to any git repository: a tree built on the remote's tip, a commit, a push that is never forced.

The bare clone in the state directory is a cache: one commit deep, and made again whenever it is in doubt. No content changed, no commit.
It goes deeper only when the tip is not the commit that was pushed last, to say whose commits came between, or that it is gone.
If somebody else pushed meanwhile, the files are rendered again on the new tip.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from leaderboard.git.clone import Author, BareClone, Since
from leaderboard.git.commits import OtherCommit
from leaderboard.git.faults import CloneDamaged, TipMoved
from leaderboard.git.process import GitProcess
from leaderboard.git.remote import Remote
from scoring.errors import InfrastructureError, OrganizerError

Files = Mapping[str, bytes]
"""Path to content."""
Render = Callable[[Files], Files]
Message = Callable[[Files, Files], str]
"""Words a commit, from the files as they are in the branch and as they will be."""

# What a render may want to see.
RELEVANT_FILES = ("README.md", "commitment.json", "index.html", "receipts.jsonl", "seal.json")
RELEVANT_FOLDERS = ("leaderboard", "leaderboard/schema")
ATTEMPTS = 6  # builds on a moving tip before the push waits for its next turn


@dataclass(frozen=True, kw_only=True)
class PublisherSettings:
    """Where and as whom to push.

    Attributes:
        repository: Any git URL or a local path; ``http://`` on loopback only, never with a password inside.
        branch: Created with the first push if it does not exist.
        state_dir: Folder for the clone; may be deleted at any time.
        token: For https; masked in ``repr``.
        ssh_key: Private key file; only it is offered.
        known_hosts: Pinned host keys; without it the user's own file decides. Unknown hosts are always refused.
        timeout_s: For one git process; publishing takes two to four of them.
    """

    repository: str
    branch: str = "main"
    state_dir: Path
    token: str | None = field(default=None, repr=False)
    ssh_key: Path | None = None
    known_hosts: Path | None = None
    author_name: str = "neuco-worker"
    author_email: str = "neuco-worker@users.noreply.github.com"
    timeout_s: float = 120.0


@dataclass(frozen=True, kw_only=True)
class Published:
    """What the branch shows now.

    Attributes:
        commit: Its tip.
        changed: Whether that was pushed here.
        between: What others had pushed since our last commit, newest first; at most a few.
        rewritten: Whether the branch no longer contained our last commit.
    """

    commit: str
    changed: bool
    between: tuple[OtherCommit, ...] = ()
    rewritten: bool = False


class Publisher:
    """Keeps one branch of one repository in step with what is rendered.

    Only who leads a challenge publishes, so nobody else is at work in the clone.

    Args:
        settings: Where and as whom to push.
        clock: Gives the time of a commit.
        git: Runs git for a publisher of another branch too; by default its own.

    Raises:
        OrganizerError: The address or the branch name cannot be used.
    """

    def __init__(
        self,
        settings: PublisherSettings,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        git: GitProcess | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._remote = Remote(url=settings.repository)
        if not re.fullmatch(r"(?!-)[\w./+@-]+", settings.branch) or re.search(
            r"\.\.|//|/\.|\.lock(/|$)|@\{|^/|/$|^\.|\.$", settings.branch
        ):
            raise OrganizerError(
                "leaderboard.branch is not a branch name.",
                cure="Use a plain name such as main.",
                code="leaderboard.bad_branch",
            )
        key = hashlib.sha256(f"{settings.repository}\0{settings.branch}".encode()).hexdigest()[:12]
        self._git = git or GitProcess(
            self._remote,
            home=settings.state_dir,
            timeout_s=settings.timeout_s,
            token=settings.token,
            ssh_key=settings.ssh_key,
            known_hosts=settings.known_hosts,
        )
        self._clone = BareClone(settings.state_dir / f"{key}.git", self._git, branch=settings.branch)
        self._seen: tuple[str, str | None, Since] | None = (
            None  # what was looked for, on which tip, and found
        )

    def publish(self, render: Render, message: str | Message, *, last: str | None = None) -> Published:
        """Push what ``render`` makes of the files that are in the branch.

        ``render`` gets what the tip holds of ``RELEVANT_FILES`` and leaderboard/, and returns path → content of what should be there;
        files it does not name stay. It may be called again when the tip moves, so it must be pure. What it raises ends the attempt.
        ``last`` is the commit that was pushed last; without it nothing is said of what others did since.

        Raises:
            OrganizerError: Credentials refused, repository not found, branch protected.
            InfrastructureError: Remote unreachable, too slow, or its branch moves faster than we can follow.
            Cancelled: :meth:`stop` was called.
        """
        renewed = False
        for _ in range(ATTEMPTS):
            try:
                return self._publish_once(render, message, last)
            except TipMoved:
                self._remote.remove_abandoned_lock(self._settings.branch)
            except CloneDamaged as error:
                if renewed:
                    raise _clone_unusable() from error
                renewed = True
                self._clone.discard()
        raise InfrastructureError(
            "Someone else pushed to the leaderboard's branch during every attempt to push.",
            cure="The worker tries again.",
            code="leaderboard.busy",
        )

    def check(self) -> None:
        """Try a push without sending anything; for the checks before a launch.

        Raises:
            OrganizerError, InfrastructureError: As :meth:`publish`. A protected branch shows only at a real push.
        """
        self._clone.discard()
        try:
            self._clone.push(self._commit(self._clone.fetch(), {}, "Check\n"), dry_run=True)
        except CloneDamaged as error:
            raise _clone_unusable() from error
        except TipMoved:
            pass  # somebody pushed between the two steps: the branch is there and takes pushes
        if reason := self._remote.fault():
            raise reason

    def existing(self) -> dict[str, bytes]:
        """Read the branch's files that :meth:`publish` hands to ``render``; none if there is no branch yet.

        Raises:
            OrganizerError, InfrastructureError: As :meth:`publish`.
        """
        try:
            return self._clone.files(self._clone.fetch(), RELEVANT_FILES, RELEVANT_FOLDERS)
        except CloneDamaged as error:
            raise _clone_unusable() from error
        except TipMoved as error:
            raise InfrastructureError(
                "Someone else pushed to the leaderboard's branch while it was read.",
                cure="Try again.",
                code="leaderboard.busy",
            ) from error

    def earlier(self, commit: str, path: str) -> bytes | None:
        """Return a file as it was in a commit that was pushed here, for a render; None if that cannot be had any more."""
        return self._clone.earlier(commit, path)

    def beside(self, branch: str) -> Publisher:
        """Return a publisher of another branch of the repository, with a history of its own; :meth:`stop` stops both."""
        return Publisher(replace(self._settings, branch=branch), clock=self._clock, git=self._git)

    def discard(self) -> None:
        """Remove the local clone; it is made again when it is needed."""
        self._clone.discard()

    def stop(self) -> None:
        """Kill the git process that runs, from another thread; :meth:`publish` then raises Cancelled."""
        self._git.stop()

    def _publish_once(self, render: Render, message: str | Message, last: str | None) -> Published:
        tip = self._clone.fetch()
        since = self._since(last, tip)
        existing = self._clone.files(tip, RELEVANT_FILES, RELEVANT_FOLDERS)
        files = render(existing)
        others = tuple(path for path in files if path not in existing)
        standing = {**existing, **(self._clone.files(tip, others, ()) if tip and others else {})}
        rewritten = not since.contained
        if tip and all(standing.get(path) == content for path, content in files.items()):
            return Published(commit=tip, changed=False, between=since.commits, rewritten=rewritten)
        words = message if isinstance(message, str) else message(standing, files)
        commit = self._commit(tip, files, words)
        self._clone.push(commit)
        self._clone.tidy()
        return Published(commit=commit, changed=True, between=since.commits, rewritten=rewritten)

    def _since(self, last: str | None, tip: str | None) -> Since:
        """Say what others did since our last commit; looked up once for a tip."""
        if last is None or last == tip:
            return Since()
        if tip is None:
            return Since(contained=False)
        if self._seen is None or self._seen[:2] != (last, tip):
            self._seen = (last, tip, self._clone.since(last, tip))
        return self._seen[2]

    def _commit(self, parent: str | None, files: Mapping[str, bytes], message: str) -> str:
        author = Author(name=self._settings.author_name, email=self._settings.author_email)
        return self._clone.commit(parent, files, message=message, author=author, at=self._clock())


def _clone_unusable() -> InfrastructureError:
    return InfrastructureError(
        "The local clone of the leaderboard's repository cannot be created.",
        cure="Check the free space and the owner of the state directory.",
        code="leaderboard.clone",
    )
