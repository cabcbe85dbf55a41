"""docs/protocol.md suffices: its formulas, with NumPy, PyTorch and the standard library, give every number of a board.

What computes (the first part) uses nothing of the product; the tests compare it with what the product computes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from leaderboard.ranking import next_board, task_stability
from leaderboard.ranking.dynamic_rank import rank
from leaderboard.rendering import public_rows
from leaderboard.rules import PhaseRules
from leaderboard.snapshot import Board, Entry, Figures, PhaseSnapshot, RowStability
from scoring.evaluate import score_embeddings
from scoring.inputs.tables import LabelRow
from scoring.protocol import Protocol, Recipe, ids_hash, row_set_hash
from scoring.randomness import Splitter, group_numbers, phase_key, secret_commitment
from scoring.tasks import TaskType
from scoring.tasks.tasks import make_task
from tests.later import GROUP, Later
from tests.leaderboard.harness.phases import START, entry
from tests.scoring.inputs.reading_tables import embeddings_of
from worker.fairness.membership import LadderEntry, ladders

pytestmark = GROUP
torch = Later("torch")

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
EPSILON = 0.02

# From embeddings to fold scores, and Randomness


def framed(part: bytes) -> bytes:
    """Return a part after its length."""
    return len(part).to_bytes(8, "big") + part


def row_set_of(ids: Sequence[str], groups: Mapping[str, str]) -> str:
    """Return the name of a row set."""
    parts = [framed(b"neuco-worker/row-set-with-groups")] if groups else []
    for name in sorted(ids, key=str.encode):
        parts += [framed(name.encode()), *([framed(groups[name].encode())] if groups else [])]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def split(seed: int, groups: Sequence[str], samples: int) -> tuple[list[int], list[int]]:
    """Return the test part and the training part of a fold."""
    generator, tenth = np.random.RandomState(seed), 0.1 * samples
    if not groups:
        mixed = generator.permutation(samples).tolist()
        return mixed[: math.ceil(tenth)], mixed[math.ceil(tenth) :]
    distinct = sorted(set(groups), key=str.encode)
    order = [distinct[number] for number in generator.permutation(len(distinct))]
    size, tested, count = Counter(groups), set[str](), 0
    for group in order:
        if abs(count + size[group] - tenth) < abs(count - tenth):
            tested.add(group)
            count += size[group]
    if not tested:
        tested.add(min(order, key=size.__getitem__))
    parts = [[row for row in range(samples) if (groups[row] in tested) == wanted] for wanted in (True, False)]
    return parts[0], parts[1]


def seeds(secret: bytes, phase: str, row_set: str, fold: int) -> tuple[int, int]:
    """Return the split seed and the training seed of a fold."""
    key = hmac.digest(secret, phase.encode(), "sha256")
    parts = b"neuco-worker/seeds", (1).to_bytes(8, "big"), row_set.encode(), fold.to_bytes(8, "big")
    digest = hmac.digest(key, b"".join(map(framed, parts)), "sha256")
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:8], "big")


def fold_score(
    rows: np.ndarray,
    labels: np.ndarray,
    groups: Sequence[str],
    *,
    regression: bool,
    seeds: tuple[int, int],
    recipe: dict[str, Any],
) -> float:
    """Train a probe on a split; return its best score on the test part."""
    test, train = map(torch.tensor, split(seeds[0], groups, len(rows)))
    x, y = torch.from_numpy(rows), torch.from_numpy(labels)
    torch.manual_seed(seeds[1])
    layer = torch.nn.Linear(rows.shape[1], 1)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=recipe["learning_rate"])
    loss = torch.nn.MSELoss() if regression else torch.nn.BCEWithLogitsLoss()
    scores = []
    for _ in range(recipe["epochs"]):
        for batch in train[drawn_order(len(train))].split(64):
            optimizer.zero_grad()
            loss(layer(x[batch])[:, 0], y[batch]).backward()
            optimizer.step()
        drawn_order(len(test))
        with torch.no_grad():
            outputs = layer(x[test])[:, 0]
        scores.append((r2 if regression else f1)(outputs, y[test]))
    return max(score for score in scores if math.isfinite(score))


def drawn_order(number: int) -> torch.Tensor:
    """Draw what one pass over a part draws; return its order."""
    torch.empty((), dtype=torch.int64).random_()
    return torch.randperm(number)


def r2(outputs: torch.Tensor, labels: torch.Tensor) -> float:
    """Return R² with its edge cases."""
    residual = float(((labels - outputs).double() ** 2).sum())
    total = float(((labels - labels.double().mean()).double() ** 2).sum())
    if residual <= 1e-4:
        return 1.0
    return 0.0 if total <= 1e-4 else 1 - residual / total


def f1(outputs: torch.Tensor, labels: torch.Tensor) -> float:
    """Return F1 with its edge cases."""
    within = bool(((outputs >= 0) & (outputs <= 1)).all())
    positive = (outputs if within else torch.sigmoid(outputs)) > 0.5
    both, either = int((positive & (labels == 1)).sum()), int(positive.sum()) + int(labels.sum())
    return 2 * both / either if either else 0.0


def standardized(embeddings: np.ndarray) -> np.ndarray:
    """Return the embeddings on which probes are trained."""
    wide = embeddings.astype(np.float64)
    return ((wide - wide.mean()) / wide.std()).astype(np.float32)


# Quality score Q, and Which submission counts


def quality(folds: Sequence[float]) -> float:
    """Return Q of fold scores."""
    finite = [score for score in folds if math.isfinite(score)]
    mean = math.fsum(finite) / len(finite)
    deviation = math.sqrt(math.fsum((score - mean) ** 2 for score in finite) / len(finite))
    return 100 * EPSILON * mean / (deviation + EPSILON)


def shown(q_mean: float, decimals: int, step: float | None) -> float:
    """Return mean Q as it is shown."""
    return round(q_mean if step is None else round(q_mean / step) * step, decimals) + 0.0


def answers(q_means: dict[str, float], decimals: int, step: float) -> dict[str, tuple[float, bool]]:
    """Climb one ladder: each content's mean Q, in the order of their first scores, to what is shown and whether it counts."""
    given_answers = {}
    value = -math.inf
    for content, q_mean in q_means.items():
        counts = q_mean > value + step
        value = shown(q_mean, decimals, step) if counts else value
        given_answers[content] = value, counts
    return given_answers


# Dynamic rank


def ranked(
    table: np.ndarray, weigh: np.ndarray, numbered: np.ndarray, ghost: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """Return weights, task ranks, R and ranks of P x T quality scores."""
    spread = table[weigh].std(axis=0) if weigh.any() else np.zeros(table.shape[1])
    total = ghost + spread.sum()
    weights = spread / total if total else np.full(len(spread), 1 / len(spread))
    ranks = 1 + (table[weigh][None] > table[:, None]).sum(axis=1)
    weighted = (ranks * weights).sum(axis=1).round(9)
    return weights, ranks, weighted, final_ranks(table, weights, weighted, weigh, numbered)


def final_ranks(
    table: np.ndarray, weights: np.ndarray, weighted: np.ndarray, weigh: np.ndarray, numbered: np.ndarray
) -> list[int]:
    """Return the ranks by R; those of entries that are apart are the ones that they would have."""
    final = places(-weighted, numbered)
    for apart in np.flatnonzero(~weigh & ~numbered):
        final[apart] = 1 + int((overtaken(table, weights, weighted, apart)[numbered] < weighted[apart]).sum())
    return final


def overtaken(table: np.ndarray, weights: np.ndarray, weighted: np.ndarray, apart: int) -> np.ndarray:
    """Return R of all entries after one that is apart has pushed them down."""
    return (weighted + ((table[apart] > table) * weights).sum(axis=1)).round(9)


def places(scores: np.ndarray, numbered: np.ndarray) -> list[int]:
    """Return one plus the number of better entries in competition."""
    return [1 + int((scores[numbered] > score).sum()) for score in scores]


# Uncertainty


@dataclass
class Replicates:
    """Mean Q, its standard error and the rounded R of each entry in each replicate; the first row is the observed one."""

    means: np.ndarray
    errors: np.ndarray
    weighted: np.ndarray
    ranks: np.ndarray
    beats: np.ndarray


def resampled(
    folds: Sequence[np.ndarray],
    row_sets: Sequence[str],
    phase: str,
    parts: Mapping[str, Sequence[int]],
    *,
    number: int,
    **rule: Any,
) -> Replicates:
    """Draw the folds of T tasks, P x K each, and compute everything again."""
    draws = {
        name: drawn_folds(phase, name, parts.get(name, range(of.shape[1])), number)
        for name, of in zip(row_sets, folds, strict=True)
    }
    results = []
    for replicate in range(number + 1):
        table, influences = [], {}
        for name, of in zip(row_sets, folds, strict=True):
            drawn, draw = draws[name][replicate]
            cells = [influence(cell, drawn) for cell in of]
            table.append([q for q, _ in cells])
            of_draws = [np.bincount(draw, values) for _, values in cells]
            influences[name] = influences.get(name, 0) + np.array(of_draws)
        quality_scores = np.array(table).T
        squares = sum((values**2).sum(axis=1) for values in influences.values())
        compared = quality_scores.round(6) if replicate else quality_scores
        weights, _, weighted, ranks = ranked(compared, **rule)
        beats = weighted[:, None] < weighted
        together = rule["weigh"] | rule["numbered"]
        for apart in np.flatnonzero(~together):
            others = overtaken(compared, weights, weighted, apart)[together]
            beats[apart, together], beats[together, apart] = (
                weighted[apart] < others,
                others < weighted[apart],
            )
        results.append((quality_scores.mean(axis=1), np.sqrt(squares) / len(folds), weighted, ranks, beats))
    return Replicates(*(np.array(part) for part in zip(*results, strict=True)))


def drawn_folds(
    phase: str, row_set: str, parts: Sequence[int], number: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the folds that each replicate draws, with the draw of each, after each fold once."""
    digest = hashlib.sha256("\0".join(["bootstrap 1", phase, row_set, str(len(parts))]).encode()).digest()
    generator = np.random.RandomState(np.frombuffer(digest, "<u4"))
    different = list(dict.fromkeys(parts))
    having = [np.flatnonzero(np.array(parts) == part) for part in different]
    rows = [np.arange(len(having)), *generator.randint(0, len(having), (number, len(having)))]
    return [
        (
            np.concatenate([having[part] for part in row]),
            np.repeat(np.arange(len(row)), [len(having[part]) for part in row]),
        )
        for row in rows
    ]


def influence(cell: np.ndarray, draw: np.ndarray) -> tuple[float, np.ndarray]:
    """Return Q of the drawn folds, and the influence of each draw on it."""
    finite = np.isfinite(cell[draw])
    if not finite.any():
        return quality(cell), np.zeros(len(draw))
    scores = np.where(finite, cell[draw], 0.0)
    drawn = scores[finite]
    varies = drawn.min() < drawn.max()
    mean, deviation = (drawn.mean(), drawn.std()) if varies else (drawn[0], 0.0)
    a = 100 * EPSILON / (deviation + EPSILON)
    b = 50 * EPSILON * mean / (deviation * (deviation + EPSILON) ** 2) if varies else 0.0
    off = scores - mean
    effect = (a * off - b * (off**2 - deviation**2)) / len(drawn)
    return 100 * EPSILON * mean / (deviation + EPSILON), np.where(finite, effect, 0.0)


def interval(means: np.ndarray, errors: np.ndarray, fewest: int) -> tuple[float, float] | None:
    """Return the 95 % interval of an entry's mean Q."""
    used = errors[1:] > 1e-9
    if fewest < 3 or (errors[0] > 1e-9 and used.mean() < 0.5):
        return None
    if errors[0] <= 1e-9:
        return round(means[0], 6), round(means[0], 6)
    z = (means[1:][used] - means[0]) / errors[1:][used]
    return tuple(round(means[0] - np.quantile(z, at) * errors[0], 6) for at in (0.975, 0.025))  # type: ignore[return-value]


def rank_interval(ranks: np.ndarray) -> tuple[int, int]:
    """Return the smallest and the largest rank without 2.5 % of the replicates at each end."""
    kept = np.sort(ranks)[len(ranks) // 40 : len(ranks) - len(ranks) // 40]
    return int(kept[0]), int(kept[-1])


def grouped(beats: np.ndarray, numbered: np.ndarray, apart: Sequence[bool]) -> list[int]:
    """Return the groups of entries in the order of the board."""
    groups: list[int] = []
    first, group, firsts = None, 0, []
    for index, competes in enumerate(numbered):
        if apart[index]:
            near = [place for place, leader in enumerate(firsts, 1) if beats[leader, index] < 0.95]
            groups.append(min(near, default=group + 1))
        elif first is not None and beats[first, index] < 0.95:
            groups.append(group)
        elif competes:
            first, group = index, group + 1
            firsts.append(index)
            groups.append(group)
        else:
            groups.append(group + 1)
    return groups


# Other tasks


@dataclass
class OtherTasks:
    """The draws, the ranks of P entries without each of T tasks, and shares of the replicates."""

    draws: np.ndarray
    without: np.ndarray
    first: np.ndarray
    same_order: np.ndarray


def other_tasks(
    table: np.ndarray, phase: str, number: int, *, weigh: np.ndarray, numbered: np.ndarray, ghost: float
) -> OtherTasks:
    """Compute what becomes of the entries of P x T quality scores with other tasks; tasks are in the order of their names."""
    tasks = table.shape[1]
    spread = table[weigh].std(axis=0) if weigh.any() else np.zeros(tasks)
    ranks = 1 + (table[weigh][None] > table[:, None]).sum(axis=1)

    def chosen(counts: np.ndarray) -> tuple[np.ndarray, list[int]]:
        total = ghost + (counts * spread).sum()
        weights = counts * spread / total if total else counts / counts.sum()
        weighted = (ranks * weights).sum(axis=1).round(9)
        return weighted, final_ranks(table, weights, weighted, weigh, numbered)

    digest = hashlib.sha256("\0".join(["task bootstrap 1", phase, str(tasks)]).encode()).digest()
    generator = np.random.RandomState(np.frombuffer(digest, "<u4"))
    draws = generator.randint(0, tasks, (number, tasks))
    boards = [chosen((draw[:, None] == range(tasks)).sum(axis=0)) for draw in draws]
    drawn, final = (np.array(part) for part in zip(*boards, strict=True))
    now = np.sign(np.diff(chosen(np.ones(tasks))[0]))
    return OtherTasks(
        draws=draws,
        without=np.array([chosen(np.arange(tasks) != task)[1] for task in range(tasks)]).T,
        first=(final == 1).mean(axis=0),
        same_order=(np.sign(np.diff(drawn)) == now).mean(axis=0),
    )


# The product's boards


def check_board(snapshot: PhaseSnapshot, board: Board, before: Board | None = None) -> None:
    """Compare every number of a board with the page's formulas, given the fold scores of the rows' submissions."""
    rules, tasks = snapshot.rules, sorted(snapshot.row_sets)
    of = {entry.submission: entry for entry in snapshot.entries}
    entries = [of[row.submission] for row in board.standings]
    table = np.array([[quality(entry.scores[task]) for task in tasks] for entry in entries])
    numbered = np.array([entry.eligible and not entry.baseline for entry in entries])
    weigh = np.array([rules.baselines_weigh if entry.baseline else entry.eligible for entry in entries])
    weights, ranks, weighted, final = ranked(table, weigh, numbered, rules.ghost_task)
    means = np.array([math.fsum(row) / len(tasks) for row in table.tolist()])
    apart = ~(weigh | numbered)
    keys = [
        (
            apart[row],
            apart[row] * final[row],
            weighted[row],
            not numbered[row],
            -means[row],
            entry.submitted_at,
            entry.submission,
        )
        for row, entry in enumerate(entries)
    ]
    assert keys == sorted(keys)
    assert [row.rank for row in board.standings] == final
    assert [row.rank_by_mean for row in board.standings] == places(means, numbered)
    old = {row.key: row.rank for row in before.standings} if before else {}
    assert [row.move for row in board.standings] == [
        old.get(row.key, row.rank) - row.rank for row in board.standings
    ]
    teams = Counter(entry.team_key for entry in snapshot.entries)
    assert [row.submissions for row in board.standings] == [teams[row.team_key] for row in board.standings]
    assert [row.q_mean for row in board.standings] == means.tolist()
    printed = [
        f"{shown(mean, rules.decimals, rules.ladder_step):.{rules.decimals}f}" for mean in means.tolist()
    ]
    assert [row.q_text.removeprefix("≈ ") for row in public_rows(board, rules.rounding)] == printed
    figures = board.figures
    assert figures is not None
    assert [list(row.q.values()) for row in figures.rows] == table.tolist()
    scores = [[np.nanmean(entry.scores[task]) for task in tasks] for entry in entries]
    assert [list(row.score.values()) for row in figures.rows] == pytest.approx(np.array(scores))
    assert [list(row.task_ranks.values()) for row in figures.rows] == ranks.tolist()
    assert list(figures.weights.values()) == pytest.approx(weights, abs=1e-12)
    assert [row.weighted_rank for row in figures.rows] == pytest.approx(weighted, abs=1e-9)
    pks = [entry.submission for entry in entries]
    flips = {}
    for left in np.flatnonzero(weigh):
        rest = np.arange(len(entries)) != left
        other = ranked(table, weigh & rest, numbered, rules.ghost_task)[2]
        flips[pks[left]] = {
            (pks[a], pks[b])
            for a, b in permutations(np.flatnonzero(numbered & rest), 2)
            if weighted[a] < weighted[b] and other[a] > other[b]
        }
    reversals = {left: set(pairs) for left, pairs in figures.leave_one_out.items()}
    assert reversals == {pk: pairs for pk, pairs in flips.items() if pairs}
    folds = [np.array([entry.scores[task] for entry in entries], float) for task in tasks]
    drawn = resampled(
        folds,
        [snapshot.row_sets[task] for task in tasks],
        snapshot.codename,
        snapshot.test_parts,
        number=rules.replicates,
        weigh=weigh,
        numbered=numbered,
        ghost=rules.ghost_task,
    )
    parts = [snapshot.test_parts.get(snapshot.row_sets[task], range(folds[0].shape[1])) for task in tasks]
    fewest = np.min(
        [
            [len({part for part, score in zip(of, row, strict=True) if np.isfinite(score)}) for row in scores]
            for scores, of in zip(folds, parts, strict=True)
        ],
        axis=0,
    )
    check_bootstrap(board, figures, drawn, numbered, fewest)
    stability = [row.stability for row in figures.rows]
    if len(tasks) < 2 or numbered.sum() < 2:
        assert set(stability) == {None}
        return
    other = other_tasks(
        table, snapshot.codename, rules.replicates, weigh=weigh, numbered=numbered, ghost=rules.ghost_task
    )
    check_stability([row for row in stability if row], other)


def check_stability(rows: Sequence[RowStability], other: OtherTasks) -> None:
    """Compare ranks without a task, and shares of replicates with other tasks."""
    assert [list(row.without.values()) for row in rows] == other.without.tolist()
    assert [row.p_first for row in rows] == other.first.tolist()
    assert [row.keeps_order for row in rows] == [*other.same_order, None]


def check_bootstrap(
    board: Board, figures: Figures, drawn: Replicates, numbered: np.ndarray, fewest: np.ndarray
) -> None:
    """Compare intervals, shares of replicates and groups."""
    ranks, beats = drawn.ranks[1:], drawn.beats[1:].mean(axis=0)
    assert [row.group for row in board.standings] == grouped(
        beats, numbered, [row.apart for row in board.standings]
    )
    for index, row in enumerate(figures.rows):
        expected = interval(drawn.means[:, index], drawn.errors[:, index], fewest[index])
        assert row.q_interval == (None if expected is None else pytest.approx(expected, abs=1.1e-6))
        assert row.rank_interval == rank_interval(ranks[:, index])
        assert (row.p_first, row.p_top3) == ((ranks[:, index] <= 1).mean(), (ranks[:, index] <= 3).mean())
        below = index + 1 < len(figures.rows)
        assert row.swap_with_next == (beats[index + 1, index] if below else None)


IDS = tuple(f"sample {number}" for number in range(80))
SECRET, PHASE, FOLDS = b"p" * 32, "eval", 6
RECIPE = {"epochs": 3, "learning_rate": 0.05}


def test_fold_scores_are_computed_by_the_page_alone() -> None:
    """Two submissions: two regressions with the same samples, and, with groups, a classification and a regression on parts of them."""
    random = np.random.RandomState(0)
    latent = random.standard_normal((len(IDS), 5))
    labels = {
        "height": latent[:, 0] * 30 + 7,
        "weight": latent[:, 1] ** 3,
        "wood": (latent[:50, 2] > 0.3) * 1.0,
        "wind": latent[:70, 3],
    }
    tasks = [
        make_task(
            name,
            TaskType.CLASSIFICATION if name == "wood" else TaskType.REGRESSION,
            [
                LabelRow(line, IDS[line], float(label), groups_by_hand(len(values)).get(IDS[line], ""))
                for line, label in enumerate(values)
            ],
            frozenset(IDS),
            source=name,
        )
        for name, values in labels.items()
    ]
    key = phase_key(SECRET, PHASE)
    protocol = Protocol(
        phase=PHASE,
        folds=FOLDS,
        embedding_dim=5,
        ids_hash=ids_hash(IDS),
        secret_commitment=secret_commitment(key),
        recipe=Recipe(**RECIPE),
    )
    for noise in (0.2, 1.1):
        matrix = (latent + noise * random.standard_normal(latent.shape)).astype(np.float32)
        card = score_embeddings(embeddings_of(IDS, matrix), tasks, protocol, key)
        for task in card.tasks:
            assert task.folds == pytest.approx(scores_by_hand(matrix, labels[task.task]), rel=2e-5, abs=2e-5)
    assert {task.name: task.row_set for task in tasks} == {
        name: row_set_of(IDS[: len(values)], groups_by_hand(len(values))) for name, values in labels.items()
    }


def test_the_vector_of_groups_follows_from_the_page() -> None:
    """Row set and test parts of the page's vector are what its words give, and what is scored."""
    vectors = json.loads(re.search(r'```json\n(\{\s+"secret".*?)```', PAGE.read_text(), re.DOTALL)[1])
    groups = [name for name, size in vectors["sizes_of_groups_of_30"].items() for _ in range(size)]
    ids = tuple(f"sample_{number:02}" for number in range(30))
    parts = [split(seed, groups, 30)[0] for seed in vectors["split_seeds"]]
    splitter = Splitter(30, 0.1, group_numbers(groups))
    assert parts == vectors["test_parts_of_30"]
    assert parts == [splitter.split(seed).test.tolist() for seed in vectors["split_seeds"]]
    row_set = row_set_of(ids, dict(zip(ids, groups, strict=True)))
    assert row_set == vectors["row_set_with_groups"] == row_set_hash(ids, tuple(groups))


def groups_by_hand(samples: int) -> dict[str, str]:
    """Return the groups of the first samples; all of 80 have none."""
    return {IDS[row]: f"tile {row**2 % 11}" for row in range(samples)} if samples < len(IDS) else {}


def scores_by_hand(matrix: np.ndarray, labels: np.ndarray) -> list[float]:
    """Return the fold scores of the page; a task's samples are the first ids."""
    ids = sorted(IDS[: len(labels)], key=str.encode)
    order = [IDS.index(name) for name in ids]
    regression, groups = len(labels) != 50, groups_by_hand(len(labels))
    if regression:
        labels = (labels - labels.min()) / (labels.max() - labels.min())
    return [
        fold_score(
            standardized(matrix)[order],
            labels[order].astype(np.float32),
            [groups[name] for name in ids] if groups else [],
            regression=regression,
            seeds=seeds(SECRET, PHASE, row_set_of(ids, groups), fold),
            recipe=RECIPE,
        )
        for fold in range(FOLDS)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_boards_with_ties_failed_folds_and_rows_out_of_competition(seed: int) -> None:
    """Few different values, equal entries and test parts, failed folds and the rules about weights change no formula."""
    random = np.random.RandomState(seed)
    number = int(random.randint(2, 9))
    tasks = {f"task {place}": f"rows {place // 2}" for place in range((5, 1, 4, 2, 8, 3)[seed])}
    entries: list[Entry] = []
    for pk in range(7):
        scores = {task: random.choice([1, 1, 1, 0.9, 0.8, 0.5], number) for task in tasks}
        for task, folds in scores.items():
            if task != "task 0":
                folds += 0.02 * random.standard_normal(number)
            folds[: int(random.randint(0, 2))] = math.nan
        if pk == 5:
            scores = dict.fromkeys(tasks, np.full(number, 0.7))
        entries.append(entry(pk, pk, scores, baseline=pk == 3, eligible=pk != 4))
    entries.append(replace(entries[0], submission=7, team_key=7))
    rules = PhaseRules(
        selection="ladder" if seed % 2 else "last",
        baselines_weigh=bool(seed % 2),
        ghost_task=float(seed % 3),
        decimals=2,
        ladder_step=0.3,
        replicates=200,
    )
    entries.append(replace(entries[1], submission=8, team_key=6, submitted_at=START + timedelta(hours=8)))
    parts = {"rows 0": tuple(place % (number // 2) for place in range(number))} if seed % 2 else {}
    snapshot = PhaseSnapshot(
        codename="dev", rules=rules, row_sets=tasks, entries=tuple(entries), test_parts=parts
    )
    earlier = replace(snapshot, entries=tuple(entries[1:7]))
    before = next_board(earlier, (), at=START + timedelta(days=1))
    assert before is not None
    board = next_board(snapshot, [before], at=START + timedelta(days=2))
    assert board is not None
    check_board(snapshot, board, before)


# Quarters, so that ties are frequent
TABLES = npst.arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(1, 6)),
    elements=st.integers(-40, 400).map(lambda n: n / 4),
)


@given(TABLES, st.data())
def test_the_dynamic_rank_of_any_table(table: np.ndarray, data: st.DataObject) -> None:
    """Weights, ranks on tasks and by mean, R, ranks, and what other tasks change are the page's, whoever weighs and has a number."""
    weigh, numbered = data.draw(st.tuples(*[npst.arrays(np.bool_, len(table))] * 2))
    ghost = data.draw(st.sampled_from([0.0, 0.5]))
    ranking = rank(table, weighs=weigh, numbered=numbered, ghost_task=ghost)
    weights, ranks, weighted, final = ranked(table, weigh, numbered, ghost)
    means = np.array([math.fsum(row) / len(row) for row in table.tolist()])
    assert ranking.weights == pytest.approx(weights, abs=1e-12)
    assert ranking.task_ranks == tuple(map(tuple, ranks.tolist()))
    assert ranking.weighted_ranks == pytest.approx(weighted, abs=1.1e-9)
    assert list(ranking.ranks) == final
    assert list(ranking.ranks_by_mean) == places(means, numbered)
    names, number = [str(task) for task in range(table.shape[1])], 30
    rows = task_stability(
        table, names, weighs=weigh, numbered=numbered, ghost_task=ghost, phase="dev", replicates=number
    )
    assert bool(rows) == (len(names) > 1 and numbered.sum() > 1)
    if rows:
        check_stability(rows, other_tasks(table, "dev", number, weigh=weigh, numbered=numbered, ghost=ghost))


def test_the_vectors_of_other_tasks() -> None:
    """Draws, ranks without a task, and shares of replicates are those that the page gives for three teams."""
    text = PAGE.read_text().split("## Other tasks")[1]
    given_ = json.loads(text.split("```json")[1].split("```")[0])
    table, every = np.array(given_["quality"], float), np.ones(3, bool)
    other = other_tasks(table, "eval", given_["replicates"], weigh=every, numbered=every, ghost=0.0)
    assert other.draws[:3].tolist() == given_["first_draws"]
    assert other.without.tolist() == given_["without"]
    assert (other.first.tolist(), other.same_order.tolist()) == (given_["first"], given_["same_order"])
    product = task_stability(
        table, given_["tasks"], weighs=every, numbered=every, phase="eval", replicates=given_["replicates"]
    )
    check_stability(product, other)


VALUES = st.floats(-5, 100, allow_nan=False)
# A content whose first file has no score keeps the first place; the last value is exactly a step higher, which is not enough.
ON_THE_STEP = [(content, True, True, number > 0) for number, content in enumerate("abac")]


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans(), st.booleans(), st.booleans()), max_size=20),
    st.lists(VALUES, min_size=6, max_size=6),
    st.sampled_from([0.1, 0.5]),
)
@example(ON_THE_STEP, [10.0, 11.0, 11.5, 0.0, 0.0, 0.0], 0.5)
def test_the_answers_of_ladders(
    submissions: list[tuple[str, bool, bool, bool]], q_means: list[float], step: float
) -> None:
    """Two teams climb two ladders each, whatever the order of reading; a content without a score now only keeps its place."""
    values = dict(zip("abcdef", q_means, strict=True))
    ladder_entries = [
        LadderEntry(
            submission=pk,
            team=(int(team), public),
            content=content,
            place=pk,
            q_mean=values[content] if scored else None,
        )
        for pk, (content, team, public, scored) in enumerate(submissions)
    ]
    rules = PhaseRules(selection="ladder", ladder_step=step)
    expected = {}
    for team in {one.team for one in ladder_entries}:
        own = [one for one in ladder_entries if one.team == team]
        scored = {one.content for one in own if one.q_mean is not None}
        climbed = answers({one.content: values[one.content] for one in own if one.content in scored}, 3, step)
        expected |= {one.submission: climbed[one.content] for one in own if one.q_mean is not None}
    shown_values = ladders(ladder_entries[::-1], rules)
    assert {pk: (answer.value, answer.counts) for pk, answer in shown_values.items()} == expected
