"""How much an attacker gains by learning only from shown values of mean Q, with 10 submissions a day for three weeks.

This is a simulation with the real scorer on small challenges. The embeddings of an honest method explain part of the hidden labels; the
attacker adds chosen noise to some of its columns, and learns from the answers. Attackers know how values are shown: rounded, or by the
Ladder (Blum and Hardt, 2015), which also rounds to its step. The attacks are:

- boosting (Blum and Hardt): each random noise is compared with the value shown before; the sum of all, with the sign of each one's effect,
  is sent in nine strengths, and the best one is kept.
- boosting at the threshold: some columns are made worse, so that a file is just below the next value that would be shown, and a small gain
  changes the answer. Private submissions, which have their own ladder, reveal the value of such files. The attacker stays at the threshold
  by making files a little better after a no, and a little worse after a yes.
- climbing: the noise is changed a little at random, and a change that raises the shown value is kept (a tie is not).
- climbing in large steps on several columns, so that a lucky one gains a step of the Ladder.
- three accounts: three times the submissions, and a ladder per account for public and for private submissions.
- lottery: nothing is shown before the end, and the best one of many files counts (``selection: best``).

It prints the gain in unrounded mean Q over the honest file, as mean and standard deviation over several challenges, and how many
comparisons showed a difference (at the threshold, how many answers were a yes).

Run with ``python -m tests.benchmarks.probing [--rows 1000] [--folds 40] [--challenges 4]``.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np

from tests.benchmarks.probing_attacks import ATTACKS, lottery
from tests.benchmarks.probing_challenge import DIM, SUBMISSIONS, TASKS, Challenge, Rule, Team, Values

FINAL = 3  # submissions of one team in a final phase
PROCESSES = 2
SEEDS = 100  # first seed of the attackers

RULES = (
    Rule(name="3 decimals"),
    Rule(name="1 decimal", decimals=1),
    Rule(name="0 decimals", decimals=0),
    Rule(name="Ladder 0.1", step=0.1),
    Rule(name="Ladder 0.5", step=0.5),
)


def attacked(name: str, rule: Rule, rows: int, folds: int, seed: int) -> tuple[float, float]:
    """Run an attack against a challenge with a rule; return its gain and the share of informative answers."""
    challenge = Challenge.make(rows, folds, seed)
    attack, accounts = ATTACKS[name]
    teams = [Team(challenge, rule) for _ in range(accounts)]
    values, told = attack(challenge.honest, teams, np.random.default_rng(SEEDS + seed))
    return challenge.mean_q(values) - challenge.mean_q(challenge.honest), told


def won(tickets: int, rows: int, folds: int, seed: int) -> float:
    """Return the gain of a lottery."""
    challenge = Challenge.make(rows, folds, seed)
    best = lottery(challenge, np.random.default_rng(SEEDS + seed), tickets)
    return best - challenge.mean_q(challenge.honest)


def honest(rows: int, folds: int, seed: int) -> float:
    """Return the mean Q of a challenge's honest file."""
    challenge = Challenge.make(rows, folds, seed)
    return challenge.mean_q(challenge.honest)


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description="Simulate attacks on a shown score.")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--folds", type=int, default=40)
    parser.add_argument("--challenges", type=int, default=4)
    parser.add_argument("--attacks", nargs="*", choices=list(ATTACKS), default=list(ATTACKS))
    options = parser.parse_args()
    seeds = range(options.challenges)
    size = options.rows, options.folds
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        start = np.mean(list(pool.map(partial(honest, *size), seeds)))
        sys.stdout.write(
            f"{SUBMISSIONS} submissions, {options.rows} rows, {DIM} columns, {TASKS} tasks, {options.folds} folds,"
            f" {options.challenges} challenges; mean Q of the honest method {start:.2f}\n"
            f"| attack | {' | '.join(rule.name for rule in RULES)} |\n|---{'|---' * len(RULES)}|\n"
        )
        for name in options.attacks:
            results = [pool.map(partial(attacked, name, rule, *size), seeds) for rule in RULES]
            cells = [_cell(np.array(list(result))) for result in results]
            sys.stdout.write(f"| {name} | {' | '.join(cells)} |\n")
            sys.stdout.flush()
        for tickets in (SUBMISSIONS, FINAL):
            gains = np.array(list(pool.map(partial(won, tickets, *size), seeds)))
            sys.stdout.write(f"lottery of {tickets}: {gains.mean():+.2f} ± {gains.std():.2f}\n")


def _cell(results: Values) -> str:
    gains, told = results.T
    return f"{gains.mean():+.2f} ± {gains.std():.2f} ({100 * told.mean():.0f} %)"


if __name__ == "__main__":
    main()
