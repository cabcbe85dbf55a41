"""The path of a submission in docs/architecture.md, compared with the code."""

from __future__ import annotations

import importlib
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
import yaml

from tests.worker.harness.harness import NEW, Harness, embeddings
from worker.evaluation.act import ScoreSubmission
from worker.sandbox import ManualClock, PhaseSettings
from worker.state import State

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
STOP = re.compile(r"^\d+\. `([\w/]+)\.py:([\w.]+)`( \(in a child\))?\.\s", re.MULTILINE)


@dataclass(frozen=True)
class Stop:
    """One stop on the path: module, qualified name, and whether a child passes it."""

    module: str
    name: str
    in_child: bool

    @property
    def function(self) -> Any:
        """The function itself.

        Raises:
            AttributeError: If there is none.
        """
        return reduce(getattr, self.name.split("."), importlib.import_module(self.module))


def stops() -> list[Stop]:
    """Read the stops from the page."""
    section = PAGE.read_text().split("## The path of a submission")[1].split("\n## ")[0]
    return [Stop(path.replace("/", "."), name, bool(child)) for path, name, child in STOP.findall(section)]


@dataclass
class Visits:
    """Records which of some functions run, in order, in any thread."""

    watched: dict[CodeType, Stop]
    seen: list[Stop] = field(default_factory=list)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Take note of a call."""
        if event == "call" and frame.f_code in self.watched:
            self.seen.append(self.watched[frame.f_code])

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch this thread, and threads that are started meanwhile."""
        before = sys.getprofile()
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(None)


@pytest.mark.processes
def test_a_submission_takes_the_documented_path(tmp_path: Path) -> None:
    """Each stop is visited once, in the order of the page, in whatever thread."""
    here = [stop for stop in stops() if not stop.in_child]
    assert len(here) >= 7
    visits = Visits({stop.function.__code__: stop for stop in here})
    with Harness(
        tmp_path,
        clock=ManualClock(),
        changes={"evalai": {"reconcile_every": 60}},  # the message comes before the listing
        settings={"phases": (PhaseSettings(codename="dev"),)},
    ) as harness:
        document = yaml.safe_load(harness.path.read_text())
        del document["phases"]["eval"]  # a board is made of each phase
        harness.path.write_text(yaml.safe_dump(document))
        with harness.worker() as worker:
            worker.drive()
            with visits.watching():
                pk = harness.submit("A", embeddings(NEW))
                worker.drive()
            with worker.store.read() as tx:
                assert tx.get(pk).state is State.PUBLISHED  # type: ignore[union-attr]
    assert visits.seen == here


def test_what_children_do_is_what_the_acts_order() -> None:
    """The stops in children are the module that the act names, and what it imports."""
    evaluate, score = (stop for stop in stops() if stop.in_child)
    assert (evaluate.module, evaluate.name) == (ScoreSubmission.module, "main")
    module = Path(importlib.import_module(evaluate.module).__file__ or "").read_text()
    assert f"from {score.module} import {score.function.__name__}" in module
