"""Cores go to the submission that came first, and none stays idle while calls wait."""

from __future__ import annotations

import threading
import time

from scoring.engines.turns import Turns


def test_the_first_submission_goes_first() -> None:
    """Its later calls are taken before earlier calls of others, and each in its order."""
    turns, done = Turns(1), list[str]()

    def call(job: str, name: str) -> None:
        with turns.take(job):
            done.append(name)

    threads = []
    with turns.take("first"):
        for job, name in (
            ("second", "b"),
            ("third", "c"),
            ("first", "a1"),
            ("second", "b2"),
            ("first", "a2"),
        ):
            threads.append(threading.Thread(target=call, args=(job, name)))
            threads[-1].start()
            while turns.waiting < len(threads):
                time.sleep(0)
    for thread in threads:
        thread.join()
    assert done == ["a1", "a2", "b", "b2", "c"]


def test_as_many_work_as_there_are_cores() -> None:
    """Calls of two submissions run on two cores at the same time; a core is given back after an error, too."""
    turns, together = Turns(2), threading.Barrier(2)

    def call(job: str) -> None:
        with turns.take(job):
            together.wait()

    for _ in range(2):
        threads = [threading.Thread(target=call, args=(job,)) for job in ("first", "second")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for job in ("first", "third"):
            try:
                with turns.take(job):
                    raise ValueError
            except ValueError:
                assert turns.waiting == 0
