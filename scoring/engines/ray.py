"""The ray engine: the compiled kernel on a Ray cluster.

A few folds of a row set are one Ray task on one core. Ray decides where and when they run, and runs them again if their process or node is
lost. The kernel scores every fold from its own seeds alone, so on equal processors the scores equal the local engine's to the bit, no
matter how, or how often, the folds are run.

Only the worker's machine and the cluster's nodes see labels. ray is an optional dependency; nothing imports this module unless the engine
is chosen.
"""

from __future__ import annotations

import logging
import platform
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numba
import numpy as np
import ray
from numpy.typing import NDArray
from ray import exceptions

from scoring.engines.base import Engine, Unit, ignore
from scoring.engines.local import LocalEngine
from scoring.errors import InfrastructureError, OrganizerError
from scoring.kernel import aligned
from scoring.scorecard import sources_digest

REACHED_WITHIN_S = 5.0  # for the head's port; ray itself would try for half a minute
FOLDS_PER_TASK = 4  # few enough that all cores finish at about the same time
TRIES = 5  # how often a task may lose its process or node


def software() -> dict[str, str]:
    """Return what two machines must share to give the same bits: versions, and a digest of the sources of ``scoring``."""
    return {
        "neuco-worker (digest of its sources)": sources_digest()[:16],
        "Python": platform.python_version(),
        "numba": numba.__version__,
        "NumPy": np.__version__,
    }


def score_folds(unit: Unit, first: int) -> tuple[dict[str, str], NDArray[np.float64]]:
    """Score a few folds of a unit on a node; return its software, and T x F scores."""
    # The object store is read-only and on small memory pages, and the kernel jumps from row to row.
    rows = aligned((unit.rows.shape[0], unit.rows.shape[1]))
    rows[:] = unit.rows
    folds = slice(first, first + FOLDS_PER_TASK)
    part = replace(
        unit, rows=rows, split_seeds=unit.split_seeds[folds], training_seeds=unit.training_seeds[folds]
    )
    return software(), LocalEngine(threads=1).score(part)


_task: Any = ray.remote(num_cpus=1, max_retries=TRIES - 1)(score_folds)


class RayEngine(Engine):
    """Score units on a Ray cluster.

    Args:
        address: ``auto`` for the cluster that this machine is part of, or ``host:port`` of its head.

    Raises:
        InfrastructureError: If the cluster cannot be reached.
        OrganizerError: If it runs another version of Ray or of Python.
    """

    name = "ray"
    libraries = ("ray",)

    def __init__(self, *, address: str = "auto") -> None:
        if not ray.is_initialized():
            try:
                _check_port(address)
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
            except (OSError, RuntimeError, ValueError) as error:
                if str(error).startswith("Version mismatch"):  # with both versions, over several lines
                    raise _differs(" ".join(str(error).split())) from None
                raise InfrastructureError(
                    f"The Ray cluster at {address!r} cannot be reached ({type(error).__name__}).",
                    hint="Start it, or let this machine join it with `ray start --address=HEAD:6379`; see deploy/ray.",
                    code="engine.ray_unreachable",
                ) from error

    def score(self, unit: Unit, *, progress: Callable[[int], None] = ignore) -> NDArray[np.float64]:
        """See :meth:`scoring.engines.base.Engine.score`.

        Raises:
            InfrastructureError: If the cluster loses the same folds again and again.
        """
        [scores] = self.score_all([unit], progress=progress)
        return scores

    def score_all(
        self,
        units: Iterable[Unit],
        *,
        progress: Callable[[int], None] = ignore,
    ) -> Iterator[NDArray[np.float64]]:
        """See :meth:`scoring.engines.base.Engine.score_all`.

        Raises:
            InfrastructureError: As :meth:`score`.
        """
        calls = [_start(unit) for unit in units]
        try:
            for of_unit in calls:
                parts = []
                for call in of_unit:
                    parts.append(_result(call))
                    progress(parts[-1].size)
                yield np.concatenate(parts, axis=1)
        except BaseException:
            for of_unit in calls:
                for call in of_unit:
                    ray.cancel(call)
            raise


def _start(unit: Unit) -> list[Any]:
    """Put a unit into the cluster, and return the references to its tasks in the order of the folds."""
    shared = ray.put(unit)
    return [_task.remote(shared, first) for first in range(0, len(unit.split_seeds), FOLDS_PER_TASK)]


def _result(call: Any) -> NDArray[np.float64]:
    try:
        there, scores = ray.get(call)
    except exceptions.RayError as error:
        raise InfrastructureError(
            f"The Ray cluster could not score some folds ({type(error).__name__}).",
            hint="Check the memory of the nodes, the installation on each of them, and `ray status`.",
            code="engine.ray_lost",
        ) from error
    differing = [
        f"{name} {there[name]} there, {own} here" for name, own in software().items() if there[name] != own
    ]
    if differing:
        raise _differs(f"A node has {'; '.join(differing)}.")
    result: NDArray[np.float64] = scores
    return result


def _differs(what: str) -> OrganizerError:
    return OrganizerError(
        f"The Ray cluster and this machine run different software. {what}",
        hint="Install the same commit with the same constraints on all nodes, see deploy/ray.",
        code="engine.ray_version",
    )


def _check_port(address: str) -> None:
    """Connect to the head's port, if the address has one.

    Raises:
        OSError: If nothing answers.
    """
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "//" not in host:
        socket.create_connection((host, int(port)), timeout=REACHED_WITHIN_S).close()
