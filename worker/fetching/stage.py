"""The fetching stage: decide which file is fetched next."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from worker.answers import answers, turns
from worker.challenge.context import Context, seconds
from worker.fetching.act import UNFETCHED, FetchFile
from worker.fetching.housekeeping import below_reserve
from worker.runtime.acts import Runner, Start
from worker.runtime.storage import FileStore
from worker.state import State, Transaction

AHEAD = 1  # files to fetch beyond those that can be scored at once; more would only fill the disk


class Fetching:
    """Has one file after another fetched.

    Attributes:
        runner: Downloads the files.

    Args:
        context: The worker's surroundings.
        files: Where files are stored.
    """

    def __init__(self, context: Context, files: FileStore) -> None:
        self._context = context
        self._files = files
        self.runner: Runner[FileStore] = Runner(
            "fetch", context.store, wake=context.wake, checkpoint=context.checkpoint
        )

    @property
    def busy(self) -> bool:
        """Whether a download is under way."""
        return self.runner.busy

    def starts(self, tx: Transaction, now: datetime) -> Iterator[Start]:
        """Yield the start of the next download, unless one is under way."""
        if not self.busy and (act := self.next_act(tx, now)) is not None:
            yield partial(self._begin, act, now)

    def _begin(self, act: FetchFile, now: datetime) -> None:
        """Begin a download if the disk has room for another file; the organizer is told if not."""
        reserve = self._context.configuration.submission.disk_reserve_gigabytes
        error = below_reserve(self._files.free_bytes(), reserve)
        if error is None:
            self._context.resolve_alerts("disk.reserve")
            self.runner.start(act, self._files, now)
        else:
            self._context.report("disk.reserve", error, now=now)

    def next_act(self, tx: Transaction, now: datetime) -> FetchFile | None:
        """Return the next download: round-robin between teams, but no more files than will soon be scored.

        An upload under way is looked at, too, because the message that it is complete may be lost, or may never be sent.
        """
        unfetched = [
            row
            for row in tx.submissions(UNFETCHED)
            if row.can_go_on(now)
            and row.read_at is not None  # otherwise its address is stale, and the intake reads it again
        ]
        if not unfetched:
            return None
        # A file that waits for a person, its phase, its next try or its team's last answer must not keep others from being fetched.
        configuration = self._context.configuration
        grid = seconds(configuration.submission.answer_grid)
        later = answers.unreleased(tx, now, grid=grid)
        fetched = tx.submissions([State.FETCHED])
        ready = [row for row in fetched if row.hold is None and not row.waits(now)]
        ready = turns.begun(tx, configuration, ready, now)
        enough = AHEAD + configuration.scoring.at_once
        if sum(row.team_key not in later for row in ready) >= enough:
            return None
        chosen = turns.next_in_turn(tx, [row for row in unfetched if row.team_key not in later])
        if chosen is None:
            return None
        return FetchFile(context=self._context, row=chosen)
