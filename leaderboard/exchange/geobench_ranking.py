"""GEO-Bench's aggregation: results normalized by a frozen file, interquartile means with bootstrap intervals, ranks, and a board.

The board has two ranks: GEO-Bench's, by the interquartile mean over all normalized results, and ours, by ranks per dataset that are
weighted with each dataset's spread. It is rendered like a challenge's board, with datasets as tasks and seeds as folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import FiniteFloat, TypeAdapter, ValidationError

from leaderboard.exchange.geobench import quoted
from leaderboard.exchange.table import rank_table
from leaderboard.ranking import next_board
from leaderboard.rendering import markdown, render
from leaderboard.rules import PhaseRules
from leaderboard.snapshot import Entry, PhaseSite, PhaseSnapshot, Site
from scoring.documents import read_text
from scoring.errors import OrganizerError

Normalizer = Mapping[str, tuple[float, float]]
RANGES = TypeAdapter(dict[str, tuple[FiniteFloat, FiniteFloat]])
REPLICATES = 1000
SEED = 100  # of the bootstrap; the same as GEO-Bench's
PHASE, TITLE = "geobench", "GEO-Bench"
DIMENSIONS = {
    "Core": "benv2 biomassters burn_scars cloudsen12 everwatch flair2 fotw kuro_siwo pastis spacenet7 substation treesatai",
    "Multi-Spectral-Dependent": "benv2 biomassters burn_scars cloudsen12 fotw pastis so2sat spacenet2",
    "Multi-Temporal": "biomassters dynamic_earthnet kuro_siwo pastis",
    "Pixel-wise": "biomassters burn_scars caffe cloudsen12 dynamic_earthnet flair2 fotw kuro_siwo pastis spacenet2 spacenet7",
    "Classification": "benv2 forestnet so2sat treesatai",
    "Detection (Object/Instance)": "everwatch nzcattle pastis_r substation",
    "Under 10m Resolution": "dynamic_earthnet flair2 spacenet2 spacenet7 treesatai",
    "10m and Above Resolution": "benv2 biomassters burn_scars caffe cloudsen12 forestnet fotw kuro_siwo pastis so2sat",
    "RGB/NIR": "dynamic_earthnet flair2 fotw spacenet7 treesatai",
}
"""GEO-Bench-2's groups of datasets. Its first column is Core."""


def read_normalizer(path: Path) -> Normalizer:
    """Read a frozen normalizer: a JSON object from dataset to its lowest and highest result.

    Raises:
        OrganizerError: If it is not such a file.
    """
    try:
        return _checked(RANGES.validate_json(read_text(path)))
    except (OSError, ValidationError) as error:
        raise OrganizerError(
            f"{path} is not a normalizer file.",
            hint='It must contain {"dataset": [lowest, highest], …}.',
            code="geobench.normalizer",
        ) from error


def make_normalizer(results: pd.DataFrame) -> Normalizer:
    """Return the lowest and highest result of each dataset; once frozen, they normalize all later submissions.

    Raises:
        OrganizerError: If all results of a dataset are equal.
    """
    values = results.groupby("dataset")["value"]
    return _checked({str(name): (float(of.min()), float(of.max())) for name, of in values})


def without_range(results: pd.DataFrame, normalizer: Normalizer) -> list[str]:
    """Return a fault for each dataset that the normalizer lacks."""
    datasets = ", ".join(map(quoted, sorted(normalizer)))
    return [
        f"The dataset {quoted(name)} is not in the normalizer (it has {datasets})."
        for name in sorted(set(results["dataset"]) - set(normalizer))
    ]


def standings(
    results: pd.DataFrame, normalizer: Normalizer, names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Aggregate results, best backbone first; backbones that lack a dataset come last, without a rank.

    Args:
        results: Results of any number of submissions.
        normalizer: Frozen ranges, one for each dataset.
        names: Backbone to display name, if there is one.

    Returns:
        For each backbone, its interquartile mean by dataset, and by dimension if it has every dataset of one; the
        ``iqm`` over all results with its 95 % bootstrap interval; the rank by it,
        where ties share the better rank; and the dynamic rank.
    """
    scores = _scores(results, normalizer)
    means = pd.DataFrame(
        {name: {dataset: _iqm(values) for dataset, values in of.items()} for name, of in scores.items()}
    ).T.sort_index(axis=1)
    complete = means.dropna()
    overall = pd.Series({name: _iqm(np.concatenate(list(scores[name].values()))) for name in complete.index})
    ranks = overall.rank(method="min", ascending=False).astype(int)
    dynamic = dict(zip(complete.index, rank_table(complete).ranks, strict=True)) if len(complete) else {}
    rows = [
        {
            "backbone": name,
            "name": names.get(name, name),
            "datasets": means.loc[name].dropna().to_dict(),
            "dimensions": {
                dimension: _iqm(np.concatenate([scores[name][dataset] for dataset in datasets.split()]))
                for dimension, datasets in DIMENSIONS.items()
                if scores[name].keys() >= set(datasets.split())
            },
            "iqm": overall.get(name),
            "interval": _interval(list(scores[name].values())) if name in overall else None,
            "rank": int(ranks[name]) if name in overall else None,
            "dynamic_rank": dynamic.get(name),
        }
        for name in scores
    ]
    return sorted(rows, key=lambda row: (row["rank"] is None, row["rank"] or 0, row["name"]))


def ranking_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the standings as a Markdown table, in percent of the datasets' ranges."""
    datasets = sorted({dataset for row in rows for dataset in row["datasets"]})
    dimensions = [name for name in DIMENSIONS if any(name in row["dimensions"] for row in rows)]
    header = ["Rank", "Dynamic rank", "Model", "IQM", "95 % interval", *dimensions, *map(markdown, datasets)]
    lines = [header, ["---:"] * 2 + [":---"] + ["---:"] * (len(header) - 3)]
    for row in rows:
        ranked = ["–"] * 2 if row["rank"] is None else [str(row["rank"]), str(row["dynamic_rank"])]
        interval = "–" if row["interval"] is None else " to ".join(map(_percent, row["interval"]))
        means = [_percent(row["dimensions"].get(name)) for name in dimensions]
        means += [_percent(row["datasets"].get(name)) for name in datasets]
        lines.append([*ranked, markdown(row["name"]), _percent(row["iqm"]), interval, *means])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def board_files(
    results: pd.DataFrame, normalizer: Normalizer, names: Mapping[str, str], *, at: datetime
) -> dict[str, bytes]:
    """Render the files of a challenge's board (README, page, data and figures), with datasets as tasks and seeds as folds.

    Backbones that lack a dataset are left out, like submissions that lack a task. If backbones have different numbers of seeds for a
    dataset, the lowest number counts, and further seeds are ignored.

    Raises:
        OrganizerError: If no backbone has every dataset.
    """
    datasets = sorted(set(results["dataset"]))
    scores = {name: of for name, of in _scores(results, normalizer).items() if len(of) == len(datasets)}
    if not scores:
        raise OrganizerError(
            "No backbone has results on every dataset.",
            hint="Complete the results of at least one backbone. It needs a result on every dataset in the folders.",
            code="geobench.none_complete",
        )
    fewest = {dataset: min(len(of[dataset]) for of in scores.values()) for dataset in datasets}
    snapshot = PhaseSnapshot(
        codename=PHASE,
        rules=PhaseRules(),
        row_sets={dataset: dataset for dataset in datasets},
        entries=tuple(
            Entry(
                submission=place,
                team_key=place,
                team=names.get(name, name),
                method=name,
                submitted_at=at,
                public=True,
                baseline=False,
                scores={dataset: tuple(of[dataset][: fewest[dataset]].tolist()) for dataset in datasets},
            )
            for place, (name, of) in enumerate(scores.items(), 1)
        ),
    )
    board = next_board(snapshot, (), at=at)
    phase = PhaseSite(
        codename=PHASE,
        rules=PhaseRules(),
        history=() if board is None else (board,),
        revealed=True,
    )
    return render(Site(title=TITLE, phases=(phase,)), readme=None)


def _checked(ranges: Normalizer) -> Normalizer:
    for name, (low, high) in ranges.items():
        if not low < high:
            raise OrganizerError(
                f"The range of {name} is [{low:g}, {high:g}].",
                hint="The second number must be greater than the first. A normalizer needs results that differ.",
                code="geobench.normalizer",
            )
    return ranges


def _scores(results: pd.DataFrame, normalizer: Normalizer) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return results scaled to their dataset's range, by backbone and dataset, ordered by seed."""
    scores: dict[str, dict[str, NDArray[np.float64]]] = {}
    for (backbone, dataset), lines in results.sort_values("seed").groupby(["backbone", "dataset"]):
        low, high = normalizer[str(dataset)]
        scores.setdefault(str(backbone), {})[str(dataset)] = (lines["value"].to_numpy(np.float64) - low) / (
            high - low
        )
    return scores


def _iqm(values: NDArray[np.float64]) -> float:
    return float(_middle_half(values).mean())


def _middle_half(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the values of an interquartile mean: the sorted last axis, without a quarter (rounded down) at either end.

    Source: Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical precipice".
    """
    number = values.shape[-1]
    return np.sort(values, axis=-1)[..., number // 4 : number - number // 4]


def _interval(groups: Sequence[NDArray[np.float64]]) -> list[float]:
    """Return the 95 % interval of the interquartile mean, with seeds resampled within each dataset."""
    generator = np.random.default_rng(SEED)
    drawn = np.concatenate(
        [group[generator.integers(0, len(group), (REPLICATES, len(group)))] for group in groups], axis=1
    )
    ends: list[float] = np.quantile(_middle_half(drawn).mean(axis=1), [0.025, 0.975]).tolist()
    return ends


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"
