"""What the checks examine, each part read once, when it is first needed. Nothing outside a temporary folder is changed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from leaderboard.git import Publisher
from scoring.inputs.identifiers import read_ids
from scoring.tasks import Task
from worker.challenge.configuration import Configuration, load
from worker.challenge.files import read_phase, read_secret
from worker.challenge.setups import PhaseSetup
from worker.challenge.web_address import EXAMPLE_REPOSITORY
from worker.organizer.doctor.labels import LabelFile, read_labels
from worker.organizer.doctor.remote import Remote, Wait
from worker.organizer.scaffold import EXAMPLE_QUEUE, examples_left
from worker.publishing import publisher_settings
from worker.state import Store, Transaction

if TYPE_CHECKING:
    from worker.organizer.doctor.cost import Cost

GIT_S = 30.0  # for one git process


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
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @cached_property
    def configuration(self) -> Configuration:
        """The checked configuration."""
        return load(self.path)

    @cached_property
    def base(self) -> Path:
        """The folder of the configuration file."""
        return self.path.resolve().parent

    @cached_property
    def ids(self) -> Mapping[str, tuple[str, ...]]:
        """Public ids per phase, in the order of their file."""
        return {
            codename: read_ids(self.configuration.path(phase.ids))
            for codename, phase in self.configuration.phases.items()
        }

    @cached_property
    def examples(self) -> Mapping[str, list[Path]]:
        """The example files of `init` that each phase still has; its tasks are not checked until they are replaced."""
        return examples_left(self.configuration)

    @property
    def has_example_repository(self) -> bool:
        """Whether the leaderboard's repository is the one that `init` writes."""
        return self.configuration.leaderboard.repository == EXAMPLE_REPOSITORY

    @property
    def has_example_challenge(self) -> bool:
        """Whether the challenge's number or queue is the one that `init` writes."""
        evalai = self.configuration.evalai
        return not evalai.challenge or evalai.queue == EXAMPLE_QUEUE

    @cached_property
    def labels(self) -> Mapping[str, tuple[LabelFile, ...]]:
        """Label files of each phase without examples, including faulty ones."""
        return {
            codename: read_labels(self.configuration.path(phase.tasks), self.ids[codename])
            for codename, phase in self.configuration.phases.items()
            if codename not in self.examples
        }

    def label_files(self) -> Iterator[LabelFile]:
        """Yield the label files of all phases; those of a folder that serves two phases only once."""
        seen = set()
        for files in self.labels.values():
            for file in files:
                if file.path not in seen:
                    seen.add(file.path)
                    yield file

    def tasks(self, codename: str) -> dict[str, Task]:
        """Return a phase's tasks that could be read, by name; none for a phase with examples."""
        return {file.task.name: file.task for file in self.labels.get(codename, ()) if file.task is not None}

    @cached_property
    def setups(self) -> Mapping[str, PhaseSetup]:
        """The phases without examples, as the worker would load them."""
        secret = read_secret(self.configuration)
        return {codename: read_phase(self.configuration, codename, secret) for codename in self.labels}

    @cached_property
    def costs(self) -> Mapping[str, Cost]:
        """The cost of a submission to each phase without examples on this machine; measured on first use."""
        from worker.organizer.doctor.cost import measure

        return {codename: measure(self, codename) for codename in self.setups}

    @property
    def measured(self) -> Mapping[str, Cost]:
        """The costs, if they were measured."""
        return self.costs if "costs" in vars(self) else {}

    @contextmanager
    def state(self) -> Iterator[Transaction | None]:
        """The existing state; None if there is none, and none is made."""
        database = self.configuration.database_file
        if database is not None and not database.is_file():
            yield None
            return
        with closing(Store(self.configuration.database_url)) as store, store.read() as tx:
            yield tx

    @cached_property
    def remote(self) -> Remote:
        """EvalAI's answers so far."""
        remote = Remote(self.configuration, clock=self.clock, wait=self._wait)
        self._open.callback(remote.close)
        return remote

    @cached_property
    def publisher(self) -> Publisher:
        """A publisher with its own clone, so that a running daemon is not disturbed."""
        settings = publisher_settings(self.configuration)
        folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="neuco-doctor-"))
        return Publisher(replace(settings, state_dir=Path(folder), timeout_s=GIT_S))
