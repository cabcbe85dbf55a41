"""Near copies between teams are found despite noise, scale and rotation, and other methods are not reported."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from leaderboard.report.likeness import NEAR, near_copies, similarities_of_rows
from leaderboard.report.private_report import report, report_page
from tests.leaderboard.harness.phases import START, phase, steady

Rows = NDArray[np.float32]
ROWS, DIM = 200, 24


def method(seed: int) -> Rows:
    """Return another method's embeddings of the same samples: ten hidden factors through a random layer."""
    factors = np.random.default_rng(99).standard_normal((ROWS, 10))
    random = np.random.default_rng(seed)
    return np.maximum(factors @ random.standard_normal((10, DIM)), 0.0).astype(np.float32)


def similarity(first: Rows, second: Rows) -> float:
    """Return the report's similarity of two submissions."""
    return float(np.vdot(similarities_of_rows(first), similarities_of_rows(second)))


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2])
def test_copies_with_noise_are_found(share: float) -> None:
    """A copy with a little noise is found, and so is one on another scale."""
    rows = method(1)
    noise = np.random.default_rng(5).standard_normal(rows.shape) * rows.std(axis=0)
    copied = (rows + share * noise) * np.linspace(0.1, 40.0, DIM) - 7.0
    assert similarity(rows, copied.astype(np.float32)) >= NEAR


def test_rotated_copies_are_found() -> None:
    """Columns of equal deviation may be rotated and reordered."""
    factors = np.random.default_rng(3).standard_normal((ROWS, DIM))
    turn, _ = np.linalg.qr(np.random.default_rng(4).standard_normal((DIM, DIM)))
    assert similarity(factors.astype(np.float32), (factors @ turn).astype(np.float32)) >= NEAR


def test_other_methods_are_not_copies() -> None:
    """Methods with the same factors are similar, but below the limit; unrelated ones are not similar, with any number of columns."""
    assert 0.3 < similarity(method(1), method(2)) < NEAR
    random = np.random.default_rng(7)
    unrelated = [random.standard_normal((ROWS, 400)).astype(np.float32) for _ in range(2)]
    assert abs(similarity(*unrelated)) < 0.05


def test_a_team_is_no_copy_of_itself() -> None:
    """Only pairs of different teams are reported, most similar first."""
    rows = method(1)
    noise = np.random.default_rng(5).standard_normal(rows.shape).astype(np.float32)
    sent = {1: rows, 2: rows + 0.1 * noise, 3: rows + 0.01 * noise, 4: method(2)}
    entries = {pk: steady(pk, 1 if pk == 3 else pk, 10, content_hash=str(pk)) for pk in sent}
    pairs = near_copies({pk: similarities_of_rows(each) for pk, each in sent.items()}, entries)
    assert [pair for _, *pair in pairs] == [[2, 3], [1, 2]]
    assert all(similarity >= NEAR for similarity, *_ in pairs)


def test_the_report_names_near_copies_and_names_alike() -> None:
    """Page and document name the teams; equal files are only duplicates; it says if nothing was compared."""
    entries = [
        steady(1, 1, 10, team="Pixel Pushers", content_hash="aa"),
        steady(2, 2, 20, team="Рixel-Pushers", content_hash="bb"),
        steady(3, 3, 30, team="Others", content_hash="aa"),
    ]
    alike = {number: similarities_of_rows(method(1)) for number in (1, 2, 3)}
    made = report(phase(*entries), None, made_at=START, alike=alike)
    pairs = [[sent["submission"] for sent in copy["submissions"]] for copy in made["near_copies"]]
    assert pairs == [[1, 2], [2, 3]]
    assert [[sent["submission"] for sent in same["submissions"]] for same in made["duplicates"]] == [[1, 3]]
    assert [[team["team_key"] for team in group] for group in made["names_alike"]] == [[1, 2]]
    assert "similarity 1.0000" in report_page(made)
    assert "Team names that look alike" in report_page(made)
    unasked = report(phase(*entries), None, made_at=START)
    assert "What teams sent was not compared." in report_page(unasked)
    assert unasked["near_copies"] == []
