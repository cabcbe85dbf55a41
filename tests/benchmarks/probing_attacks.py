"""Attacks on a shown score: each gets an honest file and accounts, and returns its final file and the share of informative answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tests.benchmarks.probing_challenge import Answer, Challenge, Team, Values

STRENGTHS = np.linspace(0.1, 1.0, 9)  # in which the sum of all noises is sent
STRENGTH, STEP = 0.3, 0.05  # of the noise on one column, in standard deviations of the column
LARGE_STEP, COLUMNS = 0.2, 4  # of the noise on several columns
CALIBRATION = 15  # submissions that reveal the value of spoilt files
SPOILT = 6  # spoilt columns of the worst file
STAIRS = 0.1  # largest change in mean Q of the aim after an answer
OVERSHOOT = 0.15  # how much better than necessary a noise is that changes the answer
BELOW = 0.5  # least distance in mean Q of a rounding threshold below the honest file

Attack = Callable[[Values, Sequence[Team], np.random.Generator], tuple[Values, float]]


def boosting(honest: Values, teams: Sequence[Team], rng: np.random.Generator) -> tuple[Values, float]:
    """Sum noises, each with the sign of its effect on the shown value."""
    [team] = teams
    plain = before = team.send(honest).value
    total = np.zeros((len(honest), 1))
    told: list[bool] = []
    while team.left > len(STRENGTHS):
        noise = rng.choice((-1.0, 1.0), total.shape)
        value = team.send(with_noise(honest, STRENGTH * noise)).value
        total += noise * np.sign(value - before)
        told.append(value != before)
        # A value on the Ladder stays until a better one replaces it.
        before = plain if team.rule.step is None else value
    return best_strength(honest, plain, team, total), float(np.mean(told))


def climbing(
    honest: Values, teams: Sequence[Team], rng: np.random.Generator, *, step: float, columns: int = 1
) -> tuple[Values, float]:
    """Change the noise at random, and keep changes that raise the shown value; the next account goes on where one ends."""
    values = honest
    told: list[bool] = []
    for team in teams:
        best = team.send(values).value
        while team.left:
            changed = with_noise(values, step * rng.standard_normal((len(honest), columns)))
            value = team.send(changed).value
            told.append(value != best)
            if value > best:
                values, best = changed, value
    return values, float(np.mean(told))


def boosting_at_the_threshold(
    honest: Values, teams: Sequence[Team], rng: np.random.Generator
) -> tuple[Values, float]:
    """Sum noises, each with the sign of the answer at the threshold."""
    spoiling = Spoiling(honest, rng)
    worth = spoiling.worth(teams[0])
    total = np.zeros((len(honest), 1))
    told: list[bool] = []
    for border in borders(teams, worth):
        while border.tries:
            noise = rng.choice((-1.0, 1.0), total.shape)
            values = spoiling.file(border.aim())
            tipped = border.ask(with_noise(values, STRENGTH * noise))
            total += noise * (tipped - border.share)
            told.append(tipped)
    return best_strength(honest, worth.honest, teams[0], total), float(np.mean(told))


@dataclass(frozen=True, kw_only=True)
class Worth:
    """An attacker's knowledge about spoilt files.

    Attributes:
        shares: Numbers of spoilt columns, decreasing.
        values: The shown value of each, increasing.
    """

    shares: Values
    values: Values

    @property
    def worst(self) -> float:
        """The value of the most spoilt file."""
        return float(self.values[0])

    @property
    def honest(self) -> float:
        """The value of the honest file."""
        return float(self.values[-1])

    def share(self, value: float) -> float:
        """Return the number of columns to spoil for a value."""
        return float(np.interp(value, self.values, self.shares))


class Spoiling:
    """An honest file with random values mixed into some columns, but never into the first."""

    def __init__(self, honest: Values, rng: np.random.Generator) -> None:
        """Draw the random values."""
        self._honest = honest
        self._other = rng.standard_normal(honest.shape)

    def file(self, columns: float) -> Values:
        """Return a file with this number of spoilt columns, the last of them in part."""
        spoilt = np.clip(columns - np.arange(-1, self._honest.shape[1] - 1), 0, 1)
        spoilt[0] = 0
        return np.cos(np.pi / 2 * spoilt) * self._honest + np.sin(np.pi / 2 * spoilt) * self._other

    def worth(self, team: Team) -> Worth:
        """Learn from private submissions the values of files with fewer and fewer spoilt columns."""
        shares = np.linspace(SPOILT, 0, CALIBRATION)
        answers = [team.send(self.file(share), private=True) for share in shares]
        # If the shown value is an older one, it says nothing about this file.
        new = np.array([answer.counts for answer in answers])
        new[0] = True
        values = np.maximum.accumulate([answer.value for answer in answers])
        return Worth(shares=shares[new], values=values[new])


class Border:
    """A threshold of answers: the next value on a ladder, or the middle between two rounded ones.

    Attributes:
        share: Share of comparisons that should get a yes: half of them, or as many as the ladder has steps.
        tries: Number of comparisons left.
    """

    def __init__(self, team: Team, worth: Worth, tries: int, *, private: bool) -> None:
        """Begin with an unused ladder, or with a rounding threshold below the honest file's value."""
        self._team, self._worth, self._private = team, worth, private
        self._offset = 0.0
        self.tries = tries
        if team.rule.step is None:
            unit = 10.0**-team.rule.decimals
            self._level = worth.honest - max(unit, BELOW) - unit / 2
            self.share = 0.5
        else:
            self._level = worth.worst + team.rule.step
            self.share = min(0.5, (worth.honest - worth.worst) / (team.rule.step + OVERSHOOT) / tries)

    def aim(self) -> float:
        """Return the number of columns to spoil in the next file."""
        return self._worth.share(self._level + self._offset)

    def ask(self, values: Values) -> bool:
        """Send a file, return whether the answer is a yes, and aim higher or lower from now on."""
        self.tries -= 1
        tipped = self._tipped(self._team.send(values, private=self._private))
        self._offset -= STAIRS * (tipped - self.share)
        return tipped

    def _tipped(self, answer: Answer) -> bool:
        if self._team.rule.step is None:
            return answer.value > self._level
        if answer.counts:
            self._level = answer.value + self._team.rule.step
        return answer.counts


def borders(teams: Sequence[Team], worth: Worth) -> Iterator[Border]:
    """Use every ladder of every team, except for the one that was used for calibration."""
    for number, team in enumerate(teams):
        if number:
            yield Border(team, worth, team.left // 2, private=True)
        yield Border(team, worth, team.left - (0 if number else len(STRENGTHS)), private=False)


def lottery(challenge: Challenge, rng: np.random.Generator, tickets: int) -> float:
    """Return the value of the best of a number of files: the honest one, and others with noise."""
    shape = len(challenge.ids), COLUMNS
    noises = (LARGE_STEP * rng.standard_normal(shape) for _ in range(tickets - 1))
    values = (challenge.mean_q(with_noise(challenge.honest, noise)) for noise in noises)
    return max(challenge.mean_q(challenge.honest), *values)


def best_strength(honest: Values, plain: float, team: Team, total: Values) -> Values:
    """Send the sum of noises in several strengths, and return the file that is kept."""
    if not total.any():
        return honest
    noise = total / total.std()
    return best_of(honest, plain, team, [with_noise(honest, strength * noise) for strength in STRENGTHS])


def best_of(honest: Values, plain: float, team: Team, files: Sequence[Values]) -> Values:
    """Send files and return the one whose own value is the highest, or the honest one if none is shown to be better."""
    best, kept = plain, honest
    for values in files:
        answer = team.send(values)
        if answer.counts and answer.value > best:
            best, kept = answer.value, values
    return kept


def with_noise(values: Values, noise: Values) -> Values:
    """Add noise to as many of the first columns as it has."""
    changed = values.copy()
    changed[:, : noise.shape[1]] += noise
    return changed


ATTACKS: dict[str, tuple[Attack, int]] = {
    "boosting": (boosting, 1),
    "boosting at the threshold, three accounts": (boosting_at_the_threshold, 3),
    "climbing": (partial(climbing, step=STEP), 1),
    "climbing in large steps, three accounts": (partial(climbing, step=LARGE_STEP, columns=COLUMNS), 3),
}
"""Name to attack and its number of accounts."""
