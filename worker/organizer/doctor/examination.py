"""What the checks examine, each part read once, when it is first needed. Nothing outside a temporary folder is changed."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar, cast
from urllib.parse import SplitResult, urlsplit

from leaderboard.git import Publisher
from scoring.errors import NeucoError, OrganizerError
from scoring.inputs.identifiers import read_ids
from scoring.tasks import Task, load_task, task_sources
from worker.challenge.configuration import Configuration, load
from worker.challenge.files import read_phase, read_secret
from worker.challenge.setups import PhaseSetup
from worker.challenge.web_address import EXAMPLE_REPOSITORY
from worker.evalai import Challenge, NotFound, Phase, PhaseSplit, Unreachable
from worker.organizer.doctor.check import NotChecked
from worker.organizer.doctor.remote import Remote, Wait
from worker.organizer.scaffold import EXAMPLE_QUEUE, examples_left
from worker.publishing import publisher_settings
from worker.state import Store, Transaction
from worker.state.store import damaged, failure

if TYPE_CHECKING:
    from worker.organizer.doctor.cost import Cost

T = TypeVar("T")
# The first version that can be configured by the environment, where no process list shows a token.
GIT_NEEDED = (2, 31)
GIT_S = 30.0  # for one git process


class Kept(Generic[T]):
    """A property that is read once. If that fails, each later use raises the same error."""

    def __init__(self, read: Callable[[Examination], T]) -> None:
        self._read = read

    def __get__(self, exam: Examination, _: type[Examination] | None = None) -> T:
        """Return the value, or raise the error."""
        name, kept = self._read.__name__, exam.kept
        if name not in kept:
            try:
                kept[name] = self._read(exam)
            except (NeucoError, NotChecked) as error:
                kept[name] = error
        value = kept[name]
        if isinstance(value, NeucoError | NotChecked):
            raise value
        return cast("T", value)


class Examination:
    """One examination of one challenge; a context manager, because it opens connections and folders.

    Args:
        path: The configuration file.
        clock: Returns the time of this machine.
        wait: Waits for the given seconds, with the reason.
    """

    def __init__(self, path: Path, *, clock: Callable[[], datetime], wait: Wait) -> None:
        self.path = path
        self._wait = wait
        self.clock = clock
        self.kept: dict[str, object] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @Kept
    def configuration(self) -> Configuration:
        """The checked configuration."""
        return load(self.path)

    @property
    def base(self) -> Path:
        """The folder of the configuration file."""
        return self.path.resolve().parent

    @Kept
    def ids(self) -> Mapping[str, tuple[str, ...]]:
        """Public ids per phase, in the order of their file."""
        return {
            codename: read_ids(self.configuration.path(phase.ids))
            for codename, phase in self.configuration.phases.items()
        }

    @Kept
    def examples(self) -> Mapping[str, list[Path]]:
        """The example files of `init` that each phase still has; its tasks are not checked until they are replaced."""
        return examples_left(self.configuration)

    @property
    def has_example_repository(self) -> bool:
        """Whether the leaderboard's repository is the one that `init` writes."""
        return self.configuration.leaderboard.repository == EXAMPLE_REPOSITORY

    @property
    def repository(self) -> str:
        """The address of the leaderboard's repository, unless it is an example."""
        if self.has_example_repository:
            raise NotChecked("leaderboard.repository is still an example.")
        return self.configuration.leaderboard.repository

    @property
    def has_example_challenge(self) -> bool:
        """Whether the challenge's number or queue is the one that `init` writes."""
        evalai = self.configuration.evalai
        return not evalai.challenge or evalai.queue == EXAMPLE_QUEUE

    @Kept
    def secret(self) -> bytes:
        """The challenge secret."""
        return read_secret(self.configuration)

    @Kept
    def loaded(self) -> Mapping[str, dict[Path, Task | OrganizerError]]:
        """The hidden tasks of each phase without examples by their source, or why the worker cannot load one."""
        loaded: dict[str, dict[Path, Task | OrganizerError]] = {}
        for codename, phase in self.configuration.phases.items():
            if codename not in self.examples:
                known = frozenset(self.ids[codename])
                sources = task_sources(self.configuration.path(phase.tasks))
                loaded[codename] = {source: _load(source, known) for source in sources}
        if not loaded:
            raise NotChecked("Every phase still has example tasks or ids.")
        return loaded

    @Kept
    def tasks(self) -> Mapping[str, list[Task]]:
        """The hidden tasks of each phase without examples, if all of them can be loaded."""
        tasks = {
            codename: [task for task in loaded.values() if isinstance(task, Task)]
            for codename, loaded in self.loaded.items()
        }
        if any(len(tasks[codename]) < len(loaded) for codename, loaded in self.loaded.items()):
            raise NotChecked("labels.files failed.")
        return tasks

    @Kept
    def setups(self) -> Mapping[str, PhaseSetup]:
        """The phases without examples, as the worker would load them."""
        return {codename: read_phase(self.configuration, codename, self.secret) for codename in self.tasks}

    @Kept
    def costs(self) -> Mapping[str, Cost]:
        """The cost of a submission to each phase without examples on this machine; measured on first use."""
        from worker.organizer.doctor.cost import measure

        return {codename: measure(self, codename) for codename in self.setups}

    @property
    def measured(self) -> Mapping[str, Cost]:
        """The costs, if they were measured."""
        return self.costs if isinstance(self.kept.get("costs"), Mapping) else {}

    @Kept
    def database(self) -> Path | None:
        """The SQLite database, undamaged; None if there is none yet, or if a server has it."""
        path = self.configuration.database_file
        if path is None or not path.is_file():
            return None
        try:
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
                (problem,) = database.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.Error as error:
            raise failure(error, path, str(error)) from error
        if problem != "ok":
            raise damaged(path, " ".join(problem.split()))
        return path

    @contextmanager
    def state(self) -> Iterator[Transaction | None]:
        """The existing state; None if there is none, and none is made."""
        if self.configuration.database_file is not None and self.database is None:
            yield None
            return
        with closing(Store(self.configuration.database_url)) as store, store.read() as tx:
            yield tx

    @Kept
    def remote(self) -> Remote:
        """EvalAI's answers so far."""
        remote = Remote(self.configuration, clock=self.clock, wait=self._wait)
        self._open.callback(remote.close)
        return remote

    @Kept
    def challenge(self) -> Challenge:
        """The challenge at EvalAI that has the configured queue.

        Raises:
            NotChecked: If the configuration still has examples instead.
            NeucoError: If EvalAI does not answer, or does not accept the token or the queue.
        """
        if self.has_example_challenge:
            raise NotChecked("evalai.challenge or evalai.queue is still an example.")
        queue = self.configuration.evalai.queue
        try:
            return self.remote.challenge()
        except NotFound as error:
            raise OrganizerError(
                f"EvalAI has no challenge with the queue {queue}.",
                cure="Copy evalai.queue from the challenge's Manage tab on EvalAI, where it appears after the bundle is uploaded.",
                code="evalai.queue",
            ) from error
        except Unreachable as error:
            # if calls by the challenge's number succeed, only the queue is at fault
            try:
                self.remote.phases()
            except NeucoError:
                raise error from None
            raise OrganizerError(
                f"{error.sentence} EvalAI answers all other requests, so two challenges probably share the queue {queue}.",
                cure="Ask EvalAI's administrators for your own queue, and enter its name as evalai.queue.",
                code="evalai.queue",
            ) from error

    @Kept
    def evalai_phases(self) -> Mapping[str, Phase]:
        """EvalAI's phases by codename."""
        return {phase.codename: phase for phase in self.remote.phases()} if self.challenge else {}

    @property
    def matched(self) -> list[tuple[str, Phase]]:
        """The configured phases that EvalAI has, with what it says of them."""
        return [
            (codename, self.evalai_phases[codename])
            for codename in self.configuration.phases
            if codename in self.evalai_phases
        ]

    @Kept
    def splits(self) -> Mapping[tuple[int, str], PhaseSplit]:
        """EvalAI's phase splits by phase and the dataset split's codename."""
        return self.remote.splits() if self.challenge else {}

    @Kept
    def git_version(self) -> tuple[int, int]:
        """The version of git, which is new enough."""
        cure = "Install it: sudo apt-get install git"
        try:
            output = subprocess.check_output(["git", "--version"], text=True, timeout=GIT_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise OrganizerError("git is not installed.", cure=cure, code="git.missing") from error
        numbers = re.search(r"(\d+)\.(\d+)", output)
        version = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
        if version < GIT_NEEDED:
            needed = "{}.{}".format(*GIT_NEEDED)
            raise OrganizerError(
                f"git is version {version[0]}.{version[1]}; {needed} or newer is needed.",
                cure=f"Upgrade git to {needed} or newer. If your distribution has no newer version, use git's own package archive.",
                code="git.old",
            )
        return version

    @Kept
    def publisher(self) -> Publisher:
        """A publisher with its own clone, so that a running daemon is not disturbed."""
        self.repository  # noqa: B018 - an example is no address
        self.git_version  # noqa: B018 - without git nothing can be pushed
        settings = publisher_settings(self.configuration)
        folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="neuco-doctor-"))
        return Publisher(replace(settings, state_dir=Path(folder), timeout_s=GIT_S))

    @Kept
    def published(self) -> Mapping[str, bytes]:
        """The files in the repository, if it would take a push."""
        self.publisher.check()
        return self.publisher.existing()

    @Kept
    def webhook(self) -> SplitResult:
        """The address of the alert webhook."""
        reference = self.configuration.alerts.webhook
        if reference is None:
            raise NotChecked("alerts.webhook is not set.")
        return urlsplit(self.configuration.secret(reference, "alerts.webhook").get_secret_value())


def _load(source: Path, known: frozenset[str]) -> Task | OrganizerError:
    """Return the task of a source, or the error."""
    try:
        return load_task(source, known)
    except OrganizerError as error:
        return error
