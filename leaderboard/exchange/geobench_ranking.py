"""GEO-Bench's aggregation: results normalized by a frozen file, interquartile means with bootstrap intervals, ranks, and a board.

The board has two ranks: GEO-Bench's, by the interquartile mean over all normalized results, and ours, by ranks per dataset that are
weighted with each dataset's spread. It is rendered like a challenge's board, with datasets as tasks and seeds as folds.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leaderboard.exchange.geobench import Result
from leaderboard.exchange.table import Table, rank_table
from leaderboard.ranking import middle_half, next_board
from leaderboard.rendering import markdown, render
from leaderboard.snapshot import Entry, PhaseSite, PhaseSnapshot, Rules, Site
from scoring.errors import OrganizerError

Normalizer = Mapping[str, tuple[float, float]]
REPLICATES = 1000
SEED = 100  # of the bootstrap; the same as GEO-Bench's
PHASE = "geobench"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The results and ranks of one backbone.

    Attributes:
        backbone: Its key.
        name: Display name.
        datasets: Interquartile mean of the normalized results, by dataset.
        iqm: Interquartile mean over all results; None unless the backbone has every dataset.
        interval: Ends of the 95 % bootstrap interval of ``iqm``, resampled within each dataset.
        rank: By ``iqm``; ties share the better rank.
        dynamic_rank: By weighted ranks over the datasets.
    """

    backbone: str
    name: str
    datasets: Mapping[str, float]
    iqm: float | None
    interval: tuple[float, float] | None
    rank: int | None
    dynamic_rank: int | None


def read_normalizer(path: Path) -> Normalizer:
    """Read a frozen normalizer: a JSON object from dataset to its lowest and highest result.

    Raises:
        OrganizerError: If it is not such a file.
    """
    try:
        document = json.loads(path.read_text("utf-8"))
        ranges = {str(name): (float(low), float(high)) for name, (low, high) in document.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise OrganizerError(
            f"{path} is not a normalizer file.",
            cure='It must contain {"dataset": [lowest, highest], …}.',
            code="geobench.normalizer",
        ) from error
    for name, (low, high) in ranges.items():
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise OrganizerError(
                f"The range of {name} in {path} is [{low:g}, {high:g}].",
                cure="The second number must be greater than the first.",
                code="geobench.normalizer",
            )
    return ranges


def make_normalizer(results: Sequence[Result]) -> Normalizer:
    """Return the lowest and highest result of each dataset; once frozen, they normalize all later submissions.

    Raises:
        OrganizerError: If all results of a dataset are equal.
    """
    ranges = {}
    for dataset in sorted({result.dataset for result in results}):
        values = [result.value for result in results if result.dataset == dataset]
        if min(values) == max(values):
            raise OrganizerError(
                f"All results on {dataset} are {values[0]:g}.",
                cure="A range needs results that differ. Create the normalizer from more submissions.",
                code="geobench.normalizer",
            )
        ranges[dataset] = (min(values), max(values))
    return ranges


def without_range(results: Sequence[Result], normalizer: Normalizer) -> tuple[str, ...]:
    """Return a fault for each dataset that the normalizer lacks."""
    unknown = sorted({result.dataset for result in results} - set(normalizer))
    known = ", ".join(f"`{name}`" for name in sorted(normalizer))
    return tuple(
        f"The dataset `{name.replace('`', chr(39))}` is not in the normalizer (it has {known})."
        for name in unknown
    )


def standings(
    results: Sequence[Result],
    normalizer: Normalizer,
    names: Mapping[str, str],
) -> tuple[Standing, ...]:
    """Aggregate results, best backbone first; backbones that lack a dataset come last, without a rank.

    Args:
        results: Results of any number of submissions.
        normalizer: Frozen ranges, one for each dataset.
        names: Backbone to display name, if there is one.
    """
    values = normalized(results, normalizer)
    datasets = sorted({dataset for by_dataset in values.values() for dataset in by_dataset})
    complete = [backbone for backbone in sorted(values) if len(values[backbone]) == len(datasets)]
    means = {
        backbone: {
            dataset: interquartile_mean(scores) for dataset, scores in sorted(values[backbone].items())
        }
        for backbone in values
    }
    overall = {
        backbone: interquartile_mean(np.concatenate(list(values[backbone].values()))) for backbone in complete
    }
    dynamic: dict[str, int] = {}
    if complete:
        table = Table(
            entries=tuple(complete),
            tasks=tuple(datasets),
            scores=tuple(tuple(means[backbone][dataset] for dataset in datasets) for backbone in complete),
        )
        dynamic = dict(zip(complete, rank_table(table).ranks, strict=True))
    rows = [
        Standing(
            backbone=backbone,
            name=names.get(backbone, backbone),
            datasets=means[backbone],
            iqm=overall.get(backbone),
            interval=bootstrap_interval(list(values[backbone].values())) if backbone in overall else None,
            rank=1 + sum(other > overall[backbone] for other in overall.values())
            if backbone in overall
            else None,
            dynamic_rank=dynamic.get(backbone),
        )
        for backbone in sorted(values)
    ]
    return tuple(sorted(rows, key=lambda row: (row.rank is None, row.rank or 0, row.name)))


def normalized(
    results: Sequence[Result], normalizer: Normalizer
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return results scaled to their dataset's range, by backbone and dataset, ordered by seed."""
    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for result in results:
        low, high = normalizer[result.dataset]
        value = (result.value - low) / (high - low)
        found.setdefault(result.backbone, {}).setdefault(result.dataset, []).append((result.seed, value))
    return {
        backbone: {
            dataset: np.array([value for _, value in sorted(pairs)])
            for dataset, pairs in sorted(each.items())
        }
        for backbone, each in found.items()
    }


def interquartile_mean(values: NDArray[np.float64]) -> float:
    """Return the mean of the middle half."""
    return float(middle_half(values).mean())


def bootstrap_interval(groups: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Return the 95 % interval of the interquartile mean, with seeds resampled within each dataset."""
    generator = np.random.default_rng(SEED)
    drawn = np.concatenate(
        [group[generator.integers(0, len(group), (REPLICATES, len(group)))] for group in groups], axis=1
    )
    low, high = np.quantile(middle_half(drawn).mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def ranking_markdown(rows: Sequence[Standing]) -> str:
    """Return the standings as a Markdown table, in percent of the datasets' ranges."""
    datasets = sorted({dataset for row in rows for dataset in row.datasets})
    header = ["Rank", "Dynamic rank", "Model", "IQM", "95 % interval", *(markdown(name) for name in datasets)]
    lines = [
        "| " + " | ".join(header) + " |",
        "| " + " | ".join(["---:"] * 2 + [":---"] + ["---:"] * (len(header) - 3)) + " |",
    ]
    for row in rows:
        cells = [
            "–" if row.rank is None else str(row.rank),
            "–" if row.dynamic_rank is None else str(row.dynamic_rank),
            markdown(row.name),
            "–" if row.iqm is None else f"{100 * row.iqm:.1f}",
            "–" if row.interval is None else f"{100 * row.interval[0]:.1f} to {100 * row.interval[1]:.1f}",
            *(f"{100 * row.datasets[name]:.1f}" if name in row.datasets else "–" for name in datasets),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def ranking_document(rows: Sequence[Standing]) -> dict[str, object]:
    """Return the standings as a JSON-ready document."""
    return {
        "replicates": REPLICATES,
        "standings": [
            {
                **vars(row),
                "datasets": dict(row.datasets),
                "interval": None if row.interval is None else list(row.interval),
            }
            for row in rows
        ],
    }


def board_files(
    results: Sequence[Result], normalizer: Normalizer, names: Mapping[str, str], *, title: str, at: datetime
) -> dict[str, bytes]:
    """Render the files of a challenge's board (README, page, data and figures), with datasets as tasks and seeds as folds.

    Backbones that lack a dataset are left out, like submissions that lack a task. If backbones have different numbers of seeds for a
    dataset, the lowest number counts, and further seeds are ignored.

    Raises:
        OrganizerError: If no backbone has every dataset.
    """
    values = normalized(results, normalizer)
    datasets = sorted({dataset for by_dataset in values.values() for dataset in by_dataset})
    complete = [backbone for backbone in sorted(values) if len(values[backbone]) == len(datasets)]
    if not complete:
        raise OrganizerError(
            "No backbone has results on every dataset.",
            cure="Complete the results of at least one backbone. It needs a result on every dataset in the folders.",
            code="geobench.none_complete",
        )
    fewest = {dataset: min(len(values[backbone][dataset]) for backbone in complete) for dataset in datasets}
    snapshot = PhaseSnapshot(
        codename=PHASE,
        title=title,
        rules=Rules(),
        row_sets={dataset: dataset for dataset in datasets},
        entries=tuple(
            Entry(
                submission=number,
                team_key=number,
                team=names.get(backbone, backbone),
                method=backbone,
                submitted_at=at,
                public=True,
                baseline=False,
                scores={
                    dataset: tuple(values[backbone][dataset][: fewest[dataset]].tolist())
                    for dataset in datasets
                },
            )
            for number, backbone in enumerate(complete, 1)
        ),
    )
    board = next_board(snapshot, (), at=at)
    if board is None:
        raise OrganizerError(
            "There are no results to show.",
            cure="Name folders with results of at least one backbone.",
            code="geobench.empty",
        )
    phase = PhaseSite(
        codename=PHASE, title=title, rules=Rules(), history=(board,), snapshot=snapshot, revealed=True
    )
    return render(Site(title=title, phases=(phase,)), readme=None)
