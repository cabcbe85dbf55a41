"""What is examined: the challenge as it is configured, its files, EvalAI and the leaderboard's repository, each read once.

Nothing outside a temporary folder is changed. EvalAI's queue is never asked for a message.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from leaderboard.git import Publisher
from scoring.errors import NeucoError, OrganizerError
from scoring.inputs.identifiers import read_ids
from scoring.tasks import Task, load_task, task_sources
from worker.challenge.configuration import EXAMPLE_REPOSITORY, Configuration
from worker.daemon import make_client
from worker.evalai import Challenge, Client, NotFound, Phase, PhaseSplit, Rejected, Throttled, Unreachable
from worker.organizer.doctor.check import NotChecked
from worker.organizer.doctor.told import Told
from worker.organizer.scaffold import EXAMPLE_QUEUE, examples_left
from worker.publishing import publisher_settings
from worker.state import Store, Transaction

T = TypeVar("T")
Wait = Callable[[float, str], None]
# The first version that can be configured by the environment, where no process list shows a token.
GIT_NEEDED = (2, 32)
GIT_S = 30.0  # for one git process
TIMEOUT_S = (5.0, 20.0)  # for a call to EvalAI
WAITS = 5  # for one call, each until EvalAI accepts calls again


@dataclass(frozen=True, kw_only=True)
class CheckedChallenge:
    """The challenge as it is configured.

    Attributes:
        path: The configuration file.
        configuration: Its content.
        clock: Returns the time of this machine.
        wait: Waits for the given seconds, with the reason.
        opened: What is closed at the end of the examination.
        baseline: Embeddings that are scored with groups and without them.
    """

    path: Path
    configuration: Configuration
    clock: Callable[[], datetime]
    wait: Wait
    opened: ExitStack
    baseline: Path | None = None

    @property
    def base(self) -> Path:
        """The folder of the configuration file."""
        return self.path.resolve().parent

    @cached_property
    def examples(self) -> Mapping[str, list[Path]]:
        """The example files of `init` that each phase still has; its tasks are not checked until they are replaced."""
        return examples_left(self.configuration)

    @property
    def repository(self) -> str:
        """The address of the leaderboard's repository, unless it is an example."""
        if self.configuration.leaderboard.repository == EXAMPLE_REPOSITORY:
            raise NotChecked("leaderboard.repository is still an example.")
        return self.configuration.leaderboard.repository

    def client(self) -> Client:
        """Return a client of EvalAI, without a call."""
        return make_client(
            self.configuration,
            timeout_s=TIMEOUT_S,
            clock=self.clock,
        )

    def ask(self, call: Callable[..., T], *arguments: object) -> T:
        """Make a call to EvalAI; if EvalAI throttles it, wait as long as EvalAI asks, and repeat it."""
        for _ in range(WAITS):
            try:
                return call(*arguments)
            except Throttled as error:
                seconds = math.ceil(error.retry_after_s)
            self.wait(
                seconds,
                "This account's calls to EvalAI are used up for this minute (a running worker shares them):"
                f" waiting {seconds} s, as EvalAI asks.",
            )
        return call(*arguments)

    def publisher(self) -> Publisher:
        """Return a publisher with its own clone, so that a running daemon is not disturbed."""
        settings = publisher_settings(self.configuration)
        folder = self.opened.enter_context(tempfile.TemporaryDirectory(prefix="neuco-doctor-"))
        return Publisher(replace(settings, state_dir=Path(folder), timeout_s=GIT_S))

    def closed(self) -> set[str]:
        """Return the phases that the organizer has closed."""
        with self.state() as tx:
            rows = {name: tx and tx.phase_record(name) for name in self.configuration.phases}
        return {name for name, row in rows.items() if row and row.closed_at}

    @contextmanager
    def state(self) -> Iterator[Transaction | None]:
        """Open the existing state; None if there is none, and none is made."""
        file = self.configuration.database_file
        if file is not None and not file.is_file():
            yield None
            return
        with closing(Store(self.configuration.database_url, make=False)) as store, store.read() as tx:
            yield tx if store.has_tables else None


@dataclass(frozen=True, kw_only=True)
class _OfChallenge:
    """Something that belongs to the challenge as it is configured."""

    challenge: CheckedChallenge

    @property
    def configuration(self) -> Configuration:
        """The configuration that names it, or should agree with it."""
        return self.challenge.configuration


@dataclass(frozen=True, kw_only=True)
class CheckedFiles(_OfChallenge):
    """The ids and hidden tasks of each phase that has no examples left."""

    ids: Mapping[str, tuple[str, ...]]
    tasks: Mapping[str, list[Task]]

    def each_task(self) -> Iterator[tuple[str, Task]]:
        """Yield the tasks with the codenames of their phases; those of a folder that serves two phases twice."""
        return ((codename, task) for codename, tasks in self.tasks.items() for task in tasks)


@dataclass(frozen=True, kw_only=True)
class CheckedEvalAI(_OfChallenge):
    """The challenge at EvalAI. Each part is read when a check first needs it, so that one that fails takes no others with it.

    Attributes:
        remote: The challenge behind the queue.
    """

    remote: Challenge
    client: Client

    @property
    def behind_queue(self) -> Told:
        """What EvalAI shows of the challenge by its queue."""
        return Told("the challenge", self.remote.said)

    @cached_property
    def page(self) -> Told:
        """What EvalAI shows of the challenge by its number.

        Raises:
            OrganizerError: If EvalAI does not show it, because it is disabled.
        """
        try:
            return Told("the challenge", self.challenge.ask(self.client.page).said)
        except Rejected as error:
            raise OrganizerError(
                error.sentence,
                hint="The challenge is probably disabled. Ask EvalAI's administrators.",
                code=error.code,
            ) from error

    @cached_property
    def phases(self) -> Mapping[str, Phase]:
        """All phases by codename."""
        return {phase.codename: phase for phase in self.challenge.ask(self.client.phases)}

    @property
    def configured(self) -> Mapping[str, Told]:
        """What EvalAI says of the phases of the configuration that it has, by codename."""
        return {
            codename: Told(f"phase {codename}", self.phases[codename].said)
            for codename in self.configuration.phases
            if codename in self.phases
        }

    @cached_property
    def splits(self) -> Mapping[tuple[int, str], PhaseSplit]:
        """Phase splits by the phase's number and the dataset split's codename."""
        with self.client.keeping():  # a call after a wait continues where the one before it was throttled
            return self.challenge.ask(self.client.splits)


@dataclass(frozen=True, kw_only=True)
class CheckedRepository(_OfChallenge):
    """The leaderboard's repository.

    Attributes:
        files: Its files on the board's branch.
        default_branch: The branch that a clone shows; None if there is none.
        in_our_places: The files that a first push would replace or remove.
    """

    files: Mapping[str, bytes]
    default_branch: str | None
    in_our_places: tuple[str, ...]


def read_files(challenge: CheckedChallenge) -> CheckedFiles:
    """Load ids and tasks as the worker does.

    Raises:
        ExceptionGroup: With an error for each file that the worker cannot load.
    """
    ids: dict[str, tuple[str, ...]] = {}
    tasks: dict[str, list[Task]] = {}
    errors: list[NeucoError] = []
    for codename, phase in challenge.configuration.phases.items():
        if codename in challenge.examples:
            continue
        tasks[codename] = []
        try:
            ids[codename] = read_ids(challenge.configuration.path(phase.ids))
            for source in task_sources(challenge.configuration.path(phase.tasks)):
                try:
                    tasks[codename].append(load_task(source, frozenset(ids[codename])))
                except NeucoError as error:
                    errors.append(error)
        except NeucoError as error:
            errors.append(error)
    if errors:
        raise ExceptionGroup("files that the worker cannot load", errors)
    if not tasks:
        raise NotChecked("Every phase still has example tasks or ids.")
    return CheckedFiles(challenge=challenge, ids=ids, tasks=tasks)


def ask_evalai(challenge: CheckedChallenge) -> CheckedEvalAI:
    """Make a worker's first call to EvalAI, which has no effect there.

    Raises:
        NotChecked: If the configuration still has examples instead.
        NeucoError: If EvalAI does not answer, or does not accept the token or the queue.
    """
    evalai = challenge.configuration.evalai
    if not evalai.challenge or evalai.queue == EXAMPLE_QUEUE:
        raise NotChecked("evalai.challenge or evalai.queue is still an example.")
    client = challenge.opened.enter_context(closing(challenge.client()))
    try:
        remote = challenge.ask(client.challenge)
    except NotFound as error:
        raise OrganizerError(
            f"EvalAI has no challenge with the queue {evalai.queue}.",
            hint="Copy evalai.queue from the challenge's Manage tab on EvalAI, where it appears after the bundle is uploaded.",
            code="evalai.queue",
        ) from error
    except Unreachable as error:
        # if calls by the challenge's number succeed, only the queue is at fault
        try:
            challenge.ask(client.phases)
        except NeucoError:
            raise error from None
        raise OrganizerError(
            f"{error.sentence} EvalAI answers other requests, so two challenges probably share the queue {evalai.queue}.",
            hint="Ask EvalAI's administrators for your own queue, and enter its name as evalai.queue.",
            code="evalai.queue",
        ) from error
    if remote.pk != evalai.challenge:
        raise OrganizerError(
            f"The queue {evalai.queue} belongs to challenge {remote.pk}, not to {evalai.challenge}.",
            hint="Correct evalai.challenge or evalai.queue.",
            code="evalai.queue",
        )
    return CheckedEvalAI(challenge=challenge, remote=remote, client=client)


def read_repository(challenge: CheckedChallenge) -> CheckedRepository:
    """Read the leaderboard's repository, after a dry run of a push."""
    challenge.repository  # noqa: B018 - an example is no address
    check_git()
    files, shown, in_our_places = challenge.publisher().check()
    return CheckedRepository(
        challenge=challenge, files=files, default_branch=shown, in_our_places=in_our_places
    )


def check_git() -> None:
    """Ask git for its version.

    Raises:
        OrganizerError: If it is missing or too old.
    """
    try:
        clean = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull}  # which git reads for this, too
        output = subprocess.check_output(["git", "--version"], text=True, timeout=GIT_S, env=clean)
    except (OSError, subprocess.SubprocessError) as error:
        raise OrganizerError(
            "git is not installed.", hint="Install it: sudo apt-get install git", code="git.missing"
        ) from error
    version = tuple(map(int, re.findall(r"\d+", output)[:2]))
    if version < GIT_NEEDED:
        needed = "{}.{}".format(*GIT_NEEDED)
        raise OrganizerError(
            f"{output.strip()} is too old; {needed} or newer is needed.",
            hint=f"Upgrade git to {needed} or newer. If your distribution has no newer version, use git's own package archive.",
            code="git.old",
        )
