"""Check of the length of training: with too few optimizer steps the probes learn nothing, even from good embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from scoring.printable import count_of
from scoring.randomness import held_out
from worker.organizer.doctor.check import Checks, Finding, warn
from worker.organizer.doctor.examination import Examination

LEAST_MOVE = 2.0
"""How many times its random initial size a weight must be able to move; measured, see :func:`_steps`."""
CHECKS = Checks()


@CHECKS.add("labels.steps", "Every probe trains enough steps to learn")
def _steps(exam: Examination) -> Iterator[Finding]:
    """Warn of tasks whose probes cannot forget their random initial weights.

    The weights of a linear probe on d values begin at random within 1/√d of zero, and a step of AdamW moves a weight by at most about the
    learning rate. So after n steps a weight can have moved n · learning rate · √d times its initial size.

    The threshold was measured on the demo's task `digit` on 23 November 2026: raw pixels (d = 64) and 1,024 random features of them, 200
    and 800 samples, learning rates 0.001, 0.003 and 0.01, 6 to 1,920 steps, 20 folds. Where weights could move less than their initial
    size, R² was at most 0.06, although these embeddings reached 0.47 to 0.78 with enough steps. At the default learning rate, R² had about
    half of that (45 % to 62 %) when weights could move 1.9 times their initial size.
    """
    scoring, dim = exam.configuration.scoring, exam.configuration.submission.embedding_dim
    needed = ceil(LEAST_MOVE / (scoring.learning_rate * dim**0.5))
    for codename, loaded in exam.tasks.items():
        tasks = {task.name: task for task in loaded}
        batches = {
            name: ceil((len(task.ids) - held_out(len(task.ids), scoring.test_size)) / scoring.batch_size)
            for name, task in tasks.items()
        }
        few = [name for name in tasks if batches[name] * scoring.epochs < needed]
        if few:
            task = min(few, key=batches.__getitem__)
            steps, epochs = batches[task] * scoring.epochs, ceil(needed / batches[task])
            yield warn(
                f"Phase {codename}: the probes of {len(few)} of {len(tasks)} tasks train for too few steps to learn much. Those of {task}"
                f" train for {count_of(steps, 'step')} in each fold, but at least {needed:,} steps are needed with"
                f" scoring.learning_rate {scoring.learning_rate:g} and {count_of(dim, 'value')} per embedding.",
                f"Label more samples, set scoring.epochs to {epochs} or more, or use a smaller scoring.batch_size.",
            )
