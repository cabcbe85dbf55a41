"""Read GEO-Bench's submission folder, and name every fault in it.

``new_submission`` holds ``results_and_parameters.csv``, one line per backbone, dataset and seed, and ``additional_info.json``. All faults
are reported at once, as sentences for a comment on a pull request.
"""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from leaderboard.exchange.table import finite_number

RESULTS = "results_and_parameters.csv"
INFO = "additional_info.json"
SEEDS = 5
SHOWN = 3

COLUMNS = (
    "backbone",
    "dataset",
    "Metric",
    "experiment_name",
    "batch_size_selection",
    "early_stop_patience",
    "n_trials",
    "Seed",
    "batch_size",
    "weight_decay",
    "lr",
    "test metric",
)
WHOLE = ("early_stop_patience", "n_trials", "Seed", "batch_size")
NUMBERS = (*WHOLE, "weight_decay", "lr", "test metric")
METRICS = ("Overall_Accuracy", "Multilabel_F1_Score", "Multiclass_Jaccard_Index")
OURS = ("R2_Score", "F1_Score", "Macro_F1_Score")  # the metrics in our own export
RMSE_DATASET = "biomassters"  # submissions convert its RMSE to a score
SELECTIONS = ("fixed", "optimized")

INFO_KEYS = (
    "Paper Link",
    "Code Repository Link ",  # the example file has this space; the key without it is accepted, too
    "License",
    "Number of HPO trials",
    "Additional information about submission",
    "Comments on new models in submission",
)
MODELS = "New model info"
MODEL_KEYS = ("model_display_name", "model_size", "unique_backbone_key")


@dataclass(frozen=True, kw_only=True)
class Result:
    """One line of the file: the result of one backbone on one dataset with one seed."""

    backbone: str
    dataset: str
    metric: str
    seed: int
    value: float


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A valid submission.

    Attributes:
        results: Lines in the order of the file.
        names: Backbone to display name, for new models.
    """

    results: tuple[Result, ...]
    names: Mapping[str, str]


def read_submission(folder: Path) -> tuple[Submission | None, tuple[str, ...]]:
    """Read a submission folder.

    Returns:
        The submission, or None if there are faults; and all faults, as sentences in Markdown.
    """
    faults: list[str] = []
    if not folder.is_dir():
        return None, (f"There is no folder `{folder.name}`.",)
    results = _results(folder / RESULTS, faults)
    names = _names(folder / INFO, faults, {result.backbone for result in results})
    if faults:
        return None, tuple(faults)
    return Submission(results=tuple(results), names=names), ()


def comment(faults: Sequence[str], summary: str = "") -> str:
    """Return the comment on a pull request: the faults, or that there are none."""
    if not faults:
        return f"### The submission is valid\n\n{summary}".rstrip() + "\n"
    lines = "\n".join(f"- {fault}" for fault in faults)
    return (
        f"### The submission cannot be taken yet\n\n{lines}\n\n"
        f"Please correct `{RESULTS}` and `{INFO}` and push again; the check runs by itself.\n"
    )


def _results(path: Path, faults: list[str]) -> list[Result]:
    text = _text(path, faults)
    if text is None:
        return []
    reader = csv.DictReader(io.StringIO(text, newline=""))
    names = [name.strip() for name in reader.fieldnames or ()]
    missing = [column for column in COLUMNS if column not in names]
    for column in missing:
        near = get_close_matches(column, names, n=1) or [
            name for name in names if name.lower() == column.lower()
        ]
        faults.append(
            f"`{RESULTS}` has no column `{column}`" + (f" (there is `{_plain(near[0])}`)." if near else ".")
        )
    if missing:
        return []
    reader.fieldnames = names
    found: dict[str, list[str]] = defaultdict(list)
    results = []
    try:
        for row in reader:
            result = _result(row, f"line {reader.line_num}", found)
            if result is not None:
                results.append(result)
    except csv.Error as error:
        faults.append(f"`{RESULTS}` is not a CSV file: {_plain(str(error))}.")
        return []
    faults.extend(f"{what}: {_some(places)}." for what, places in found.items())
    if not results and not found:
        faults.append(f"`{RESULTS}` has no results.")
    if not found:
        faults.extend(_judge_seeds(results))
        faults.extend(_judge_metrics(results))
    return results


def _result(row: Mapping[str, str | None], place: str, found: dict[str, list[str]]) -> Result | None:
    values = {column: (row.get(column) or "").strip() for column in COLUMNS}
    before = sum(map(len, found.values()))
    for column in ("backbone", "dataset", "experiment_name"):
        if not values[column]:
            found[f"`{column}` is empty"].append(place)
    for column in NUMBERS:
        number = finite_number(values[column])
        if number is None:
            found[f"`{column}` is not a number"].append(f"{place} ({_quoted(values[column])})")
        elif column in WHOLE and not number.is_integer():
            found[f"`{column}` is not a whole number"].append(f"{place} ({_quoted(values[column])})")
    if values["batch_size_selection"] not in SELECTIONS:
        found["`batch_size_selection` is neither `fixed` nor `optimized`"].append(
            f"{place} ({_quoted(values['batch_size_selection'])})"
        )
    if not _known_metric(values["Metric"], values["dataset"]):
        known = ", ".join(f"`{metric}`" for metric in METRICS)
        found[f"`Metric` is none of {known}"].append(f"{place} ({_quoted(values['Metric'])})")
    value = finite_number(values["test metric"])
    if value is not None and values["Metric"] in METRICS and not 0 <= value <= 1:
        found["`test metric` is not between 0 and 1 (is it in percent?)"].append(
            f"{place} ({_quoted(values['test metric'])})"
        )
    if sum(map(len, found.values())) > before or value is None:
        return None
    return Result(
        backbone=values["backbone"],
        dataset=values["dataset"],
        metric=values["Metric"],
        seed=int(float(values["Seed"])),
        value=value,
    )


def _known_metric(metric: str, dataset: str) -> bool:
    return metric in METRICS or metric in OURS or (dataset == RMSE_DATASET and "rmse" in metric.lower())


def _judge_seeds(results: Iterable[Result]) -> list[str]:
    seeds: dict[tuple[str, str], list[int]] = defaultdict(list)
    for result in results:
        seeds[result.backbone, result.dataset].append(result.seed)
    faults = []
    for (backbone, dataset), used in sorted(seeds.items()):
        which = f"{_quoted(backbone)} on {_quoted(dataset)}"
        if len(set(used)) < SEEDS:
            faults.append(
                f"{which} has {len(set(used))} different seeds; at least {SEEDS} are needed for each backbone."
            )
        elif len(set(used)) < len(used):
            again = sorted({seed for seed in used if used.count(seed) > 1})
            faults.append(f"{which} has the seed {again[0]} {used.count(again[0])} times.")
    return faults


def _judge_metrics(results: Iterable[Result]) -> list[str]:
    metrics: dict[str, set[str]] = defaultdict(set)
    for result in results:
        metrics[result.dataset].add(result.metric)
    return [
        f"{_quoted(dataset)} is measured by {', '.join(f'`{_plain(name)}`' for name in sorted(used))}; use one metric per dataset."
        for dataset, used in sorted(metrics.items())
        if len(used) > 1
    ]


def _names(path: Path, faults: list[str], backbones: set[str]) -> dict[str, str]:
    """Check ``additional_info.json`` and return the display names of its new models."""
    text = _text(path, faults)
    if text is None:
        return {}
    try:
        document = json.loads(text)
    except ValueError as error:
        faults.append(f"`{INFO}` is not JSON: {_plain(str(error))}.")
        return {}
    if not isinstance(document, dict):
        faults.append(f"`{INFO}` does not contain keys with values.")
        return {}
    stripped = {str(key).strip() for key in document}
    needed = [key.strip() for key in (*INFO_KEYS, MODELS)]
    faults.extend(f"`{INFO}` has no key `{key}`." for key in needed if key not in stripped)
    for key in INFO_KEYS:
        value = document.get(key, document.get(key.strip(), ""))
        if not isinstance(value, str):
            faults.append(
                f"`{key.strip()}` in `{INFO}` is not a text (write `N/A` if there is nothing to say)."
            )
    models = document.get(MODELS, [])
    if not isinstance(models, list) or not all(isinstance(model, dict) for model in models):
        faults.append(f"`{MODELS}` in `{INFO}` is not a list of models.")
        return {}
    names = {}
    for number, model in enumerate(models, 1):
        absent = [key for key in MODEL_KEYS if not isinstance(model.get(key), str) or not model[key].strip()]
        if absent:
            faults.append(
                f"Model {number} in `{MODELS}` has no {' and no '.join(f'`{key}`' for key in absent)}."
            )
        elif backbones and model["unique_backbone_key"] not in backbones:
            key = _quoted(model["unique_backbone_key"])
            faults.append(
                f"Model {number} in `{MODELS}` names the backbone {key}, which is not in `{RESULTS}`."
            )
        else:
            names[model["unique_backbone_key"]] = model["model_display_name"]
    return names


def _text(path: Path, faults: list[str]) -> str | None:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        faults.append(f"There is no `{path.name}` in the folder.")
    except (OSError, UnicodeDecodeError):
        faults.append(f"`{path.name}` cannot be read as UTF-8 text.")
    return None


def _some(places: Sequence[str]) -> str:
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return ", ".join(places[:SHOWN]) + more


def _quoted(text: str) -> str:
    return f"`{_plain(text)}`" if text else "nothing"


def _plain(text: str) -> str:
    """Return text that cannot end the code span that it is put into."""
    shown = " ".join(text.replace("`", "'").split())
    return shown if len(shown) <= 60 else shown[:59] + "…"
