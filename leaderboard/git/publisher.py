"""Push the published files to a git repository, as a commit on the remote's tip, never with force.

The bare clone in the state directory is a cache that is made again whenever it seems damaged. If no content changed, there is no commit,
unless somebody else changed one of our files: then a signed commit says that its content is ours again, as it is now.
The clone is one commit deep, unless the tip is not our last commit: then it fetches more, to name the commits of others or to detect that
ours is gone. If somebody pushes meanwhile, the files are rendered again on the new tip.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from leaderboard.git.clone import BareClone, Sign
from leaderboard.git.process import GitProcess, PublisherSettings
from leaderboard.git.remote import ABANDONED_S, CloneDamaged, TipMoved
from scoring.errors import InfrastructureError, OrganizerError
from scoring.printable import name_some, printable

Files = Mapping[str, bytes]
"""Path to content."""
Render = Callable[[Files, Files], Files]
"""Returns the new files, from the files in the branch and those in our last commit."""
Message = Callable[[Files, Files], str]
"""Returns a commit's message, from the files in the branch and the new files."""

Result = TypeVar("Result")

# The files that are passed to ``render``.
README = "README.md"
OWN_FILES = (".gitattributes", README, "commitment.json", "index.html", "receipts.jsonl")
RELEVANT_FOLDERS = ("ids", "leaderboard", "leaderboard/schema")
# A challenge's folders. They hold nothing of others, for which its signed commit would vouch.
OWN_FOLDERS = ("ids", "leaderboard", "reveal")
ATTEMPTS = 6  # how often a push that came too late is tried again at once


@dataclass(frozen=True, kw_only=True)
class Published:
    """The state of the branch after publishing, or as it was fetched.

    Attributes:
        commit: Its tip; empty if there is no branch.
        changed: Whether this call pushed it, or an earlier one that did not learn of it.
        others: The newest commits with which others had changed our files, except the text in README.md; hash and author of each.
        rewritten: Whether the branch no longer contained our last commit.
        own: Our newest commit in it before; None if there was none.
        shown: The branch that visitors saw before; None if there was none.
        files: The tip of the branch `files` before; None if there was none.
    """

    commit: str
    changed: bool
    others: str = ""
    rewritten: bool = False
    own: str | None = None
    shown: str | None = None
    files: str | None = None


class ForeignFiles(OrganizerError):
    """The branch has files that a first push would replace or remove, and that are not ours.

    Args:
        paths: What they are, untrusted text.
    """

    usual_code = "leaderboard.foreign_files"

    def __init__(self, paths: Collection[str]) -> None:
        super().__init__(
            f"The leaderboard's branch has files that the first push would replace or remove: {name_some([*map(printable, paths)])}.",
            hint="If nobody needs them, run `neuco-worker board publish`, which asks for your yes. Otherwise move them elsewhere, or name"
            " another branch or repository.",
        )


class Publisher:
    """Keeps one branch of one repository equal to the rendered files.

    Only the challenge's leading worker publishes, so no other process uses the clone.

    Args:
        settings: The repository and branch to push to, and the credentials.
        clock: Returns the time of a commit.
        git: The process runner of another branch's publisher, to share; None makes a new one.

    Raises:
        OrganizerError: The address cannot be used.
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
        self._git = git or GitProcess(settings)
        key = hashlib.sha256(f"{settings.repository}\0{settings.branch}".encode()).hexdigest()[:12]
        self._clone = BareClone(settings.state_dir / f"{key}.git", self._git, branch=settings.branch)

    def publish(
        self,
        render: Render,
        message: str | Message,
        *,
        sign: Sign,
        last: str | None = None,
        folders: Collection[str] = (),
        replace_foreign: bool = True,
    ) -> Published:
        """Render the files from those in the branch, and push them if they changed, or if somebody else changed one of them.

        ``render`` gets the tip's ``OWN_FILES``, ids/ and leaderboard/, and the same files as we pushed them last. It returns path → content
        of the new files. Everything else in ``folders`` is removed, and all other files stay. It is called again if the tip moves, so it
        must be pure. An exception from it ends the attempt. ``last`` is the commit that was pushed last; without it, our newest commit in
        the branch counts as that. Unless ``replace_foreign``, a first push replaces and removes nothing.

        Raises:
            ForeignFiles: The branch has none of our commits, but files at our paths.
            OrganizerError: The credentials were refused, the repository was not found, or the branch is protected.
            InfrastructureError: The remote is unreachable, too slow or locked, or others push during every attempt.
            Cancelled: :meth:`stop` was called.
        """
        return self._repeated(
            partial(self._publish_once, render, message, sign, last, folders, replace_foreign=replace_foreign)
        )

    def look(self, *, sign: Sign, last: str | None = None) -> tuple[Files, Files]:
        """Return the files that :meth:`publish` would pass to ``render`` now.

        Raises:
            OrganizerError, InfrastructureError: As :meth:`publish`.
        """
        _, existing, published = self._repeated(partial(self._look, sign, last))
        return existing, published

    def _repeated(self, attempt: Callable[[], Result]) -> Result:
        for _ in range(ATTEMPTS):
            try:
                return attempt()
            except TipMoved:
                failure = _busy(self._git.remote.lock(self._settings.branch))
            except CloneDamaged as error:
                failure = error
                self._clone.discard()
        raise failure

    def _in_our_places(self, tip: str | None) -> tuple[str, ...]:
        """Return the files at the tip that a push replaces or removes, unless they are ours."""
        return self._clone.paths(tip, sorted({*OWN_FILES, *OWN_FOLDERS} - {README}))

    def check(self) -> tuple[Files, str | None, tuple[str, ...]]:
        """Try a push without sending anything, for the checks before a launch.

        Returns:
            The branch's files that :meth:`publish` passes to ``render`` (none if there is no branch yet), the branch that a clone of the
            repository shows, if there is one, and the files that a first push would replace or remove.

        Raises:
            OrganizerError, InfrastructureError: As :meth:`publish`; but only a real push detects a protected branch.
        """
        tip, shown, _ = self._clone.fetch()
        files = self._clone.files(tip, OWN_FILES, RELEVANT_FOLDERS)
        self._clone.commit(tip, {}, message="Check\n", at=self._clock())
        with suppress(TipMoved):  # if somebody pushed meanwhile, the branch exists and accepts pushes
            self._clone.push(dry_run=True)
        if reason := self._git.remote.fault():
            raise reason
        return files, shown, self._in_our_places(tip)

    def for_branch(self, branch: str) -> Publisher:
        """Return a publisher of another branch of the repository, which has its own history; :meth:`stop` stops both."""
        return Publisher(replace(self._settings, branch=branch), clock=self._clock, git=self._git)

    def discard(self) -> None:
        """Remove the local clone; it is made again when it is needed."""
        self._clone.discard()

    def stop(self) -> None:
        """Kill the running git process, from another thread; :meth:`publish` then raises Cancelled."""
        self._git.stop()

    def _look(self, sign: Sign, last: str | None) -> tuple[Published, Files, Files]:
        """Return the branch as it is now, and the files at its tip and in our newest commit."""
        tip, shown, files = self._clone.fetch(last)
        own, contained = (tip, True) if last == tip else self._clone.newest_own(last, tip, sign)
        existing = self._clone.files(tip, OWN_FILES, RELEVANT_FOLDERS)
        published = existing if own == tip else self._clone.files(own, OWN_FILES, RELEVANT_FOLDERS)
        seen = Published(
            commit=tip or "",
            changed=own == tip and last not in (None, tip),
            rewritten=not contained,
            own=own,
            shown=shown,
            files=files,
        )
        return seen, existing, published

    def _publish_once(
        self,
        render: Render,
        message: str | Message,
        sign: Sign,
        last: str | None,
        folders: Collection[str],
        *,
        replace_foreign: bool,
    ) -> Published:
        seen, existing, published = self._look(sign, last)
        tip, own = seen.commit or None, seen.own
        files = render(existing, published)
        if not replace_foreign and last is None and own is None and (foreign := self._in_our_places(tip)):
            raise ForeignFiles(foreign)
        is_ahead = not seen.rewritten and own not in (None, tip)
        changed = self._clone.changed(str(own), seen.commit) if is_ahead else ()
        overwritten = {path for path in changed if path in folders or path in files}
        restored = sorted(overwritten - {README})  # the text around the board in README.md is the organizers'
        if restored:
            seen = replace(seen, others=self._clone.authors(str(own), seen.commit, restored))
        others = tuple(path for path in files if path not in existing)
        standing = {**existing, **self._clone.files(tip, others, ())}
        if tip and not overwritten and all(standing.get(path) == content for path, content in files.items()):
            return seen
        words = message if isinstance(message, str) else message(standing, files)
        payload = self._clone.commit(tip, files, message=words, at=self._clock(), folders=folders)
        commit = self._clone.sign(payload, sign)
        self._clone.push()
        self._clone.tidy()
        return replace(seen, commit=commit, changed=True)


def _busy(lock: Path | None) -> InfrastructureError:
    """Return the error after pushes that came too late, or that git refused because of a lock."""
    if lock is not None:
        return InfrastructureError(
            f"Another git process has locked the leaderboard's branch, or was killed and left its lock: {lock}.",
            hint=f"The worker tries again, and removes a lock that is older than {ABANDONED_S:.0f} seconds.",
            code="leaderboard.locked",
        )
    return InfrastructureError(
        "Someone else pushed to the leaderboard's branch during every attempt to push.",
        hint="The worker tries again.",
        code="leaderboard.busy",
    )
