"""A small challenge that is attacked through the values that it shows, and the accounts of the attacker."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scoring.engines import make_engine
from scoring.evaluate import score_embeddings
from scoring.inputs.embeddings import Embeddings
from scoring.metrics import shown
from scoring.protocol import Protocol, Recipe, ids_hash
from scoring.randomness import phase_key, secret_commitment
from scoring.tasks import Task, TaskType
from tests.worker.harness.rules import phase_rules
from worker.fairness.membership import Rung, ladders

SUBMISSIONS = 210  # of one team
DIM, TASKS = 16, 4

Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How a team's values are shown.

    Attributes:
        decimals: Decimals of the value.
        step: Step of the Ladder; None without it.
    """

    name: str
    decimals: int = 3
    step: float | None = None


class Answer(NamedTuple):
    """The answer to a submission: the value, and whether it is the submission's own."""

    value: float
    counts: bool


@dataclass(frozen=True, kw_only=True)
class Challenge:
    """Hidden tasks and an honest method's embeddings.

    Attributes:
        honest: n x N values of the embeddings.
    """

    honest: Values
    tasks: tuple[Task, ...]
    protocol: Protocol
    key: bytes
    ids: tuple[str, ...]

    @classmethod
    def make(cls, rows: int, folds: int, seed: int) -> Challenge:
        """Make a challenge with labels that the embeddings explain by half."""
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
            folds=folds,
            embedding_dim=DIM,
            ids_hash=ids_hash(ids),
            secret_commitment=secret_commitment(key),
            recipe=Recipe(learning_rate=0.01, epochs=10),
        )
        return cls(honest=honest, tasks=tasks, protocol=protocol, key=key, ids=ids)

    def mean_q(self, values: Values) -> float:
        """Return the mean Q of embeddings of all ids."""
        embeddings = Embeddings.from_rows(self.ids, values.astype(np.float32))
        engine = make_engine("local", threads=1)
        return score_embeddings(embeddings, self.tasks, self.protocol, self.key, engine=engine).q_mean


class Team:
    """One account: a limited number of submissions, and a ladder each for public and for private ones.

    Attributes:
        rule: The rule of its answers, which attackers know.
        left: Number of submissions that EvalAI still accepts.
    """

    def __init__(self, challenge: Challenge, rule: Rule) -> None:
        """Begin without submissions."""
        self.rule = rule
        self.left = SUBMISSIONS
        self._challenge = challenge
        self._rungs: list[Rung] = []
        self._rules = phase_rules(selection="ladder", decimals=rule.decimals, ladder_step=rule.step)

    def send(self, values: Values, *, private: bool = False) -> Answer:
        """Score a file, and return the answer."""
        if not self.left:
            raise RuntimeError(f"{SUBMISSIONS} submissions are all that EvalAI lets through")
        self.left -= 1
        value = self._challenge.mean_q(values)
        if self.rule.step is None:
            return Answer(shown(value, self.rule.decimals), counts=True)
        rung = Rung(
            submission=len(self._rungs),
            team=(1, not private),
            content=hashlib.sha256(values.tobytes()).hexdigest(),
            place=len(self._rungs),
            q_mean=value,
        )
        self._rungs.append(rung)
        told = ladders(self._rungs, self._rules)[rung.submission]
        if told.value is None or told.counts is None:
            raise RuntimeError("a ladder shows values and what counts")
        return Answer(told.value, told.counts)
