"""What a submission to a phase costs on this machine: random embeddings are scored on the real tasks with two folds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from worker.challenge.configuration import Configuration
from worker.challenge.files import read_phase

FOLDS = 2
CSV_BYTES = 12  # of one value with all digits of a float32, and its comma


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of one submission to a phase.

    Attributes:
        tasks: How many it is scored on.
        rows: Its public ids.
        folds: Of each task.
        seconds: From its matrix to its score, estimated for all folds from two.
        csv_bytes: Its size as plain CSV, about.
    """

    tasks: int
    rows: int
    folds: int
    seconds: float
    csv_bytes: int


def measure(configuration: Configuration, codename: str, secret: bytes) -> Cost:
    """Score random embeddings on the phase's tasks.

    Raises:
        NeucoError: If the embeddings cannot be scored, so that the tasks or settings are wrong.
    """
    import numpy as np

    from scoring.engines import make_engine
    from scoring.evaluate import score_embeddings
    from scoring.inputs.embeddings import Embeddings
    from scoring.warm import warm

    warm()
    setup, settings = read_phase(configuration, codename, secret), configuration.scoring
    ids, dim, folds = setup.ids, setup.protocol.embedding_dim, setup.protocol.folds
    matrix = np.random.default_rng(0).standard_normal((len(ids), dim), dtype=np.float32)
    few = min(folds, FOLDS)
    card = score_embeddings(
        Embeddings.from_rows(ids, matrix),
        setup.record.tasks,
        replace(setup.protocol, folds=few),
        setup.key,
        engine=make_engine(settings.engine, **settings.engine_options()),
    )
    training_s = sum(task.seconds for task in card.tasks)
    return Cost(
        tasks=len(setup.tasks),
        rows=len(ids),
        folds=folds,
        seconds=card.seconds + training_s * (folds / few - 1),
        csv_bytes=CSV_BYTES * dim * len(ids),
    )
