"""An organizer's session: what commands need from a challenge while a daemon may be running."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scoring.errors import InfrastructureError, OrganizerError
from worker.challenge.configuration import Configuration, load
from worker.challenge.secrets import public_value
from worker.challenge.setups import PhaseSetup, read_phase, read_secret
from worker.runtime.storage import FileStore, fault
from worker.state import LeaderLock, Store, Transaction, leader_lock

Tell = Callable[[str], object]
"""Called with a sentence about what a command does or waits for."""

LOOK_EVERY_S = 0.5  # between two looks at what the leading worker has done
WORD_EVERY_S = 15.0


@dataclass(frozen=True, kw_only=True)
class OrganizerSession:
    """A challenge, opened for its organizer.

    Attributes:
        configuration: The checked configuration.
        store: Durable state, shared with a daemon that may be running.
        files: Stored submission files.
        now: When the command began.
        clock: Returns the time, for the end of a long command.
    """

    configuration: Configuration
    store: Store
    files: FileStore
    now: datetime
    clock: Callable[[], datetime]

    def leader_lock(self) -> LeaderLock:
        """Return the lock of the leading worker, which is not taken yet."""
        return leader_lock(self.configuration.database_url, self.configuration.state_dir)

    def phase(self, codename: str) -> PhaseSetup:
        """Read one phase as its files and settings are now, regardless of its record.

        Raises:
            OrganizerError: If there is no such phase; as :func:`worker.challenge.setups.read_phase`.
        """
        self.check_phase(codename)
        with self.store.read() as tx:
            beacon = public_value(tx.public_commitments(), codename)
        return read_phase(self.configuration, codename, read_secret(self.configuration), beacon)

    def is_closed(self, phase: str | None) -> bool:
        """Return whether a phase's board is closed, so that it will not follow a decision."""
        with self.store.read() as tx:
            record = tx.phase_record(phase or "")
        return record is not None and record.closed_at is not None

    def check_phase(self, codename: str) -> None:
        """Check that the configuration has a phase; its files are not read.

        Raises:
            OrganizerError: If there is no such phase.
        """
        phases = self.configuration.phases
        if codename not in phases:
            raise OrganizerError(
                f"There is no phase {codename!r}.",
                hint=f"The phases are: {', '.join(phases)}.",
                code="phase.unknown",
            )


@contextmanager
def open_session(config: Path) -> Iterator[OrganizerSession]:
    """Open a challenge for a command, and close it afterwards.

    Raises:
        OrganizerError: If the configuration is wrong.
        InfrastructureError: If the database cannot be opened.
    """
    configuration = load(config)
    try:
        store = Store(configuration.database_url)
    except InfrastructureError as error:
        raise fault(configuration.state_dir) or error from None
    with closing(store):
        yield OrganizerSession(
            configuration=configuration,
            store=store,
            files=FileStore(configuration.state_dir),
            now=datetime.now(UTC),
            clock=lambda: datetime.now(UTC),
        )


def check_clock(tx: Transaction) -> None:
    """Check that the worker has not found this machine's clock wrong: what a command registers has its time for good.

    Raises:
        InfrastructureError: If it has, and has not found it right since.
    """
    for alert in tx.alerts():
        if alert.code == "clock.wrong":
            raise InfrastructureError(
                alert.text,
                hint="Then run the command again. Nothing was done. If no worker runs, `neuco-worker once` compares the clocks.",
                code=alert.code,
            )


class LeaderWait:
    """Waits for what a command has asked of the leading worker, and reports that from time to time.

    Args:
        tell: Called with a sentence about what the command waits for.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._next_word_s = time.monotonic()

    def pause(self, what: str) -> None:
        """Wait until the next look at what the leader has done; ``what`` completes "waiting for the leader to"."""
        if time.monotonic() >= self._next_word_s:
            self._tell(f"Waiting for the running worker to {what}.")
            self._next_word_s += WORD_EVERY_S
        time.sleep(LOOK_EVERY_S)
