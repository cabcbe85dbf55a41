"""Check of the length of training: with too few optimizer steps the probes learn nothing, even from good embeddings."""

from __future__ import annotations

from collections.abc import Iterator

from scoring.training_length import training_length
from worker.organizer.doctor.check import Checks, Finding, warn
from worker.organizer.doctor.examination import Examination

CHECKS = Checks()


@CHECKS.add("labels.steps", "Every probe trains enough steps to learn")
def _steps(exam: Examination) -> Iterator[Finding]:
    """Warn of tasks whose probes cannot forget their random initial weights."""
    scoring, dim = exam.configuration.scoring, exam.configuration.submission.embedding_dim
    for codename, tasks in exam.tasks.items():
        lengths = {
            task.name: training_length(
                len(task.ids),
                dim,
                epochs=scoring.epochs,
                batch_size=scoring.batch_size,
                learning_rate=scoring.learning_rate,
                test_size=scoring.test_size,
            )
            for task in tasks
        }
        short = [name for name, length in lengths.items() if not length.is_enough]
        if short:
            task = min(short, key=lambda name: lengths[name].steps)
            length = lengths[task]
            yield warn(
                f"Phase {codename}: the probes of {len(short)} of {len(tasks)} tasks train for too few steps to learn much. Those of {task}"
                f" train for {length.reason}.",
                f"Label more samples, set scoring.epochs to {length.epochs} or more, or use a smaller scoring.batch_size.",
            )
