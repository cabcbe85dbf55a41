"""How far an attacker climbs who learns from the shown score alone: 10 submissions a day for three weeks.

A simulation with the real scorer on a small challenge. The embeddings of an honest method explain part of the hidden labels; the attacker
adds noise of their own choice to one of its columns, reads mean Q, rounded as it is shown, and goes on from there. Two known attacks and
one that learns nothing:

- boosting (after Blum and Hardt, The Ladder, 2015): 200 random noises, each compared with the plain file; their sum, with the sign of what
  each did to the score, is sent in ten strengths, and the best one stays.
- climbing: the noise is changed a little at random; what raises the shown value stays (a tie does not).
- blind: as boosting, with signs from a coin.

What is printed is the gain of unrounded mean Q over the plain file, mean and standard deviation over several challenges, and how many of
the comparisons showed a difference at all.

Run with ``python -m tests.benchmarks.probing [--rows 600] [--challenges 5]``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from scoring.engines import make_engine
from scoring.evaluate import score_embeddings
from scoring.inputs.embeddings import Embeddings
from scoring.protocol import Protocol, Recipe, ids_hash
from scoring.randomness import phase_key, secret_commitment
from scoring.tasks import Task, TaskType

SUBMISSIONS = 210
COMPARISONS = 200
STRENGTH, STEP = 0.3, 0.05  # of the noise, where a column's standard deviation is 1
DIM, TASKS, FOLDS = 16, 4, 10
DECIMALS = (3, 1, 0)

Shown = Callable[[NDArray[np.float64]], float]
Attack = Callable[[Shown, int, np.random.Generator], tuple[NDArray[np.float64], float]]


@dataclass(frozen=True, kw_only=True)
class Challenge:
    """Hidden tasks and an honest method's embeddings.

    Attributes:
        honest: n x N values of the embeddings.
    """

    honest: NDArray[np.float64]
    tasks: tuple[Task, ...]
    protocol: Protocol
    key: bytes
    ids: tuple[str, ...]

    @classmethod
    def make(cls, rows: int, seed: int) -> Challenge:
        """Make a challenge whose labels are half explained by the embeddings."""
        rng = np.random.default_rng(seed)
        ids = tuple(f"s{row:05d}" for row in range(rows))
        honest = rng.standard_normal((rows, DIM))
        key = phase_key(seed.to_bytes(32, "big"), "dev")
        tasks = tuple(
            Task(
                name=f"t{number}",
                type=TaskType.REGRESSION,
                ids=ids,
                labels=honest @ rng.standard_normal(DIM) + 4 * rng.standard_normal(rows),
                version=str(number),
                row_set=ids_hash(ids),
            )
            for number in range(TASKS)
        )
        protocol = Protocol(
            phase="dev",
            folds=FOLDS,
            embedding_dim=DIM,
            ids_hash=ids_hash(ids),
            secret_commitment=secret_commitment(key),
            recipe=Recipe(learning_rate=0.01, epochs=10),
        )
        return cls(honest=honest, tasks=tasks, protocol=protocol, key=key, ids=ids)

    def mean_q(self, noise: NDArray[np.float64]) -> float:
        """Score the honest embeddings with noise on their first column."""
        matrix = self.honest.copy()
        matrix[:, 0] += noise
        embeddings = Embeddings.from_rows(self.ids, matrix.astype(np.float32))
        engine = make_engine("local", threads="auto")
        return score_embeddings(embeddings, self.tasks, self.protocol, self.key, engine=engine).q_mean


def boosting(
    shown: Shown, rows: int, rng: np.random.Generator, *, blind: bool = False
) -> tuple[NDArray[np.float64], float]:
    """Return the noise that stays, and the share of comparisons that showed a difference."""
    plain = shown(np.zeros(rows))
    total, told = np.zeros(rows), 0
    for _ in range(COMPARISONS):
        noise = rng.choice((-1.0, 1.0), rows)
        gain = shown(STRENGTH * noise) - plain
        told += gain != 0
        total += noise * (rng.choice((-1.0, 1.0)) if blind else np.sign(gain))
    total /= max(1.0, float(total.std()))
    tries = [(plain, 0.0), *((shown(strength * total), strength) for strength in np.linspace(0.1, 1.0, 9))]
    return max(tries)[1] * total, told / COMPARISONS


def climbing(shown: Shown, rows: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], float]:
    """Return the noise that stays, and the share of comparisons that showed a difference."""
    noise, told = np.zeros(rows), 0
    best = shown(noise)
    for _ in range(SUBMISSIONS - 1):
        step = noise + STEP * rng.standard_normal(rows)
        value = shown(step)
        told += value != best
        if value > best:
            noise, best = step, value
    return noise, told / (SUBMISSIONS - 1)


ATTACKS: dict[str, Attack] = {
    "boosting": boosting,
    "climbing": climbing,
    "blind": partial(boosting, blind=True),
}


def attacked(attack: Attack, challenge: Challenge, decimals: int, seed: int) -> tuple[float, float]:
    """Let an attack run against a challenge that shows so many decimals; return its gain and what it was told."""
    sent = 0

    def shown(noise: NDArray[np.float64]) -> float:
        nonlocal sent
        sent += 1
        return round(challenge.mean_q(noise), decimals)

    rows = len(challenge.ids)
    noise, told = attack(shown, rows, np.random.default_rng(seed))
    if sent > SUBMISSIONS:
        raise RuntimeError(f"{sent} submissions are more than EvalAI lets through")
    return challenge.mean_q(noise) - challenge.mean_q(np.zeros(rows)), told


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description="Simulate attacks on a shown score.")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--challenges", type=int, default=8)
    options = parser.parse_args()
    challenges = [Challenge.make(options.rows, seed) for seed in range(options.challenges)]
    start = np.mean([challenge.mean_q(np.zeros(options.rows)) for challenge in challenges])
    sys.stdout.write(
        f"{SUBMISSIONS} submissions, {options.rows} rows, {TASKS} tasks, {FOLDS} folds, {options.challenges} challenges; "
        f"mean Q of the honest method {start:.2f}\n| attack | decimals | gain in mean Q | sd | comparisons that told something |\n"
        "|---|---|---|---|---|\n"
    )
    for name, attack in ATTACKS.items():
        for decimals in DECIMALS:
            results = [
                attacked(attack, challenge, decimals, 100 + seed) for seed, challenge in enumerate(challenges)
            ]
            gains, told = np.array(results).T
            sys.stdout.write(
                f"| {name} | {decimals} | {gains.mean():+.3f} | {gains.std():.3f} | {100 * told.mean():.0f} % |\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
