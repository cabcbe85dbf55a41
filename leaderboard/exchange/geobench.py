"""GEO-Bench's submission folder: read it and name every fault in it, or write it with folds in place of seeds.

``new_submission`` holds ``results_and_parameters.csv``, one line per backbone, dataset and seed, and ``additional_info.json``. All faults
are reported at once, as sentences for a comment on a pull request.
"""

from __future__ import annotations

import io
import math
from codecs import BOM_UTF8
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    FiniteFloat,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from leaderboard.exchange.runs import SUMMARY, computed_again, method_of, read_run
from scoring.documents import contents
from scoring.errors import OrganizerError
from scoring.printable import name_some

RESULTS = "results_and_parameters.csv"
INFO = "additional_info.json"
SEEDS = 5  # of every backbone on every dataset, no more and no fewer
SHOWN = 3
PARSER = "Error tokenizing data. C error: "  # how pandas begins what is wrong with CSV
METRICS = (
    "Overall_Accuracy",
    "Multilabel_F1_Score",
    "Multiclass_Jaccard_Index",
    "test_test_map",
    "test_test_segm_map",
)
OURS = {"regr": "R2_Score", "cls": "F1_Score", "multiclass": "Macro_F1_Score", "multilabel": "Macro_F1_Score"}
"""The metrics in our own export, by type of task."""
RMSE_DATASET = "biomassters"  # submissions convert its RMSE to a score
WEIGHT_DECAY = 0.01  # AdamW's default in PyTorch, which the protocol uses
STATEMENT = (
    f"Each Seed is one of the first {SEEDS} random train/test splits (folds) of neuco-worker: a probe on frozen embeddings, trained on 90 %"
    " of the labeled samples and scored on the rest. Folds share samples, so their spread is not that of independent repetitions."
)


def _whole(value: float) -> float:
    if not value.is_integer():
        raise ValueError("is not a whole number")
    return value


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Whole = Annotated[FiniteFloat, AfterValidator(_whole)]


class GeoBenchResult(BaseModel):
    """One line of the results: a backbone on a dataset with one seed."""

    backbone: Text
    dataset: Text
    metric: str = Field(alias="Metric")
    experiment_name: Text
    partition: Text = Field(alias="partition name")
    decoder: Text
    frozen_or_full_ft: Literal["frozen", "full_ft"]
    data_percentages: Text
    batch_size_selection: Literal["HPO", "Fixed", "fixed", "optimized"]
    early_stop_patience: Whole | Literal[""]
    n_trials: Whole
    seed: Whole = Field(alias="Seed")
    batch_size: Whole
    weight_decay: FiniteFloat
    lr: FiniteFloat
    value: FiniteFloat = Field(alias="test metric")

    @field_validator("metric")
    @classmethod
    def _is_known(cls, metric: str, info: ValidationInfo) -> str:
        rmse = info.data.get("dataset") == RMSE_DATASET and "rmse" in metric.lower()
        if not rmse and metric not in (*METRICS, *OURS.values()):
            raise ValueError(f"is none of {', '.join(f'`{name}`' for name in METRICS)}")
        return "RMSE" if rmse else metric

    @field_validator("value")
    @classmethod
    def _in_range(cls, value: float, info: ValidationInfo) -> float:
        if info.data.get("metric") in METRICS and not 0 <= value <= 1:
            raise ValueError("is not between 0 and 1 (is it in percent?)")
        return value


class NewModel(BaseModel):
    """A backbone that the submission adds; a submission without one has a single model with empty texts."""

    model_display_name: str
    model_size: str
    unique_backbone_key: str


class Info(BaseModel):
    """``additional_info.json``. GEO-Bench requires the space at the end of a key; it is not required here."""

    paper: str = Field(alias="Paper Link")
    code: str = Field(alias="Code Repository Link ")
    license: str = Field(alias="License")
    trials: str = Field(alias="Number of HPO trials")
    more: str = Field(alias="Additional information about submission")
    comments: str = Field(alias="Comments on new models in submission")
    models: list[NewModel] = Field(alias="New model info")


COLUMNS = [str(field.alias or name) for name, field in GeoBenchResult.model_fields.items()]


def read_submission(folder: Path) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """Read a submission folder.

    Returns:
        The results, with the columns backbone, dataset, metric, seed and value; the names of new models, by backbone; and all faults, as
        sentences in Markdown. With faults, results and names are incomplete.
    """
    results, faults = _read_results(folder / RESULTS)
    names: dict[str, str] = {}
    try:
        keys: dict[str, Any] = TypeAdapter(dict[str, Any]).validate_json(
            contents(folder / INFO).removeprefix(BOM_UTF8)
        )
        aliases = {str(field.alias).strip(): field.alias for field in Info.model_fields.values()}
        info = Info.model_validate({aliases.get(key.strip(), key): value for key, value in keys.items()})
        names = {
            model.unique_backbone_key: model.model_display_name
            for model in info.models
            if model.unique_backbone_key
        }
    except OSError:
        faults.append(f"There is no `{INFO}` in `{folder.name}`.")
    except ValidationError as error:
        faults += [f"{_place(fault)} {_words(fault)}." for fault in error.errors()]
    if not faults:
        faults += [
            f"The new model {quoted(key)} is not a backbone in `{RESULTS}`."
            for key in names.keys() - set(results["backbone"])
        ]
    return results, names, faults


def write_submission(folder: Path, results: pd.DataFrame) -> None:
    """Write a submission folder from :func:`fold_rows`."""
    folder.mkdir(parents=True, exist_ok=True)
    results.to_csv(folder / RESULTS, index=False, lineterminator="\n")
    text = dict.fromkeys([str(field.alias) for field in Info.model_fields.values()], "N/A")
    models = [
        NewModel(model_display_name=name, model_size="N/A", unique_backbone_key=name)
        for name in sorted(set(results["backbone"]))
    ]
    info = Info.model_validate(
        text
        | {"Number of HPO trials": "1", "Additional information about submission": STATEMENT}
        | {"New model info": models}
    )
    (folder / INFO).write_text(info.model_dump_json(by_alias=True, indent=4) + "\n", "utf-8")


def comment(faults: Sequence[str], summary: str = "") -> str:
    """Return the comment on a pull request: the faults, or that there are none."""
    if not faults:
        return f"### The submission is valid\n\n{summary}".rstrip() + "\n"
    lines = "\n".join(f"- {fault}" for fault in faults)
    return (
        f"### The submission cannot be taken yet\n\n{lines}\n\n"
        f"Please correct `{RESULTS}` and `{INFO}` and push again; the check runs by itself.\n"
    )


def rows_of_runs(output_dir: Path, phase: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the rows of a standalone phase's runs, and the names of runs that are left out, with the reason.

    NeuCo-Bench's own runs lack the scores of their folds or the types of their tasks. A backbone is a method, or a run if its method has
    several.

    Raises:
        OrganizerError: If no run is left.
    """
    rows: list[dict[str, object]] = []
    paths = sorted((output_dir / phase).glob(f"*/{SUMMARY}"))
    runs = {path.parent.name: read_run(path.parent) for path in paths}
    left_out = computed_again({name: summary for name, (summary, _) in runs.items()})
    for name, (_, results) in runs.items():
        if any(result.q_t is None or result.task_type not in OURS for result in results.values()):
            left_out[name] = "has no scores of folds, or no types of tasks"
    runs = {name: run for name, run in runs.items() if name not in left_out}
    methods = Counter(map(method_of, runs))
    for name, (summary, results) in runs.items():
        is_only_run = methods[method_of(name)] == 1
        for task, result in results.items():
            about = {
                "backbone": method_of(name) if is_only_run else name,
                "dataset": task,
                "Metric": OURS[result.task_type],
                "experiment_name": summary.experiment,
            }
            rows += fold_rows(about, result.q_t or (), result.hyperparameters)
    if not rows:
        raise OrganizerError(
            f"There are no runs with the scores of all folds in {output_dir / phase}.",
            hint="Set --output_dir and --phase to those of the runs, and score with output_fold_results: true.",
            code="runs.no_folds",
        )
    return pd.DataFrame(rows, columns=COLUMNS), left_out


def fold_rows(
    about: Mapping[str, str], folds: Sequence[float | None], parameters: Mapping[str, Any]
) -> list[dict[str, object]]:
    """Return a line of the results for each of the first folds with a score; ``about`` has the columns that all of them share.

    Raises:
        OrganizerError: If there are not enough.
    """
    scored = [(fold, score) for fold, score in enumerate(folds) if score is not None and math.isfinite(score)]
    if len(scored) < SEEDS:
        raise OrganizerError(
            f"{about['backbone']} has {len(scored)} folds with a score on {about['dataset']}, but GEO-Bench needs {SEEDS}.",
            hint=f"Score with at least {SEEDS} folds.",
            code="geobench.folds",
        )
    shared = {
        **about,
        "partition name": "1.00x train",
        "decoder": "probe",
        "frozen_or_full_ft": "frozen",
        "data_percentages": 100,
        "batch_size_selection": "Fixed",
        "early_stop_patience": parameters.get("epochs", 0),
        "n_trials": 1,
        "batch_size": parameters.get("batch_size", 0),
        "weight_decay": WEIGHT_DECAY,
        "lr": parameters.get("learning_rate", 0.0),
    }
    return [{**shared, "Seed": fold, "test metric": score} for fold, score in scored[:SEEDS]]


def _read_results(path: Path) -> tuple[pd.DataFrame, list[str]]:
    empty = pd.DataFrame(columns=["backbone", "dataset", "metric", "seed", "value"])
    try:
        # without a header, of which pandas would rename repeated names and, if lines are longer, shift all
        text = contents(path).decode("utf-8-sig")
        cells = pd.read_csv(io.StringIO(text), header=None, dtype=str, keep_default_na=False).map(str.strip)
    except OSError:
        return empty, [f"There is no `{RESULTS}` in `{path.parent.name}`."]
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        return empty, [
            f"`{RESULTS}` cannot be read as CSV in UTF-8: {_plain(str(error).removeprefix(PARSER))}."
        ]
    names = cells.iloc[0].tolist()
    if odd := {column: names.count(column) for column in COLUMNS if names.count(column) != 1}:
        return empty, [
            f"`{RESULTS}` has {f'{count} columns' if count else 'no column'} `{column}`."
            for column, count in odd.items()
        ]
    table = cells.iloc[1:].set_axis(names, axis=1)
    try:
        rows = TypeAdapter(list[GeoBenchResult]).validate_python(table[COLUMNS].to_dict("records"))
    except ValidationError as error:
        places: defaultdict[str, list[str]] = defaultdict(list)
        for fault in error.errors():
            line, column = int(fault["loc"][0]) + 2, fault["loc"][1]
            places[f"`{column}` {_words(fault)}"].append(f"line {line} ({quoted(str(fault['input']))})")
        return empty, [f"{what}: {name_some(where, SHOWN)}." for what, where in places.items()]
    if not rows:
        return empty, [f"`{RESULTS}` has no results."]
    results = pd.DataFrame([row.model_dump(include=set(empty.columns)) for row in rows])
    return results, list(_judge_seeds(results))


def _judge_seeds(results: pd.DataFrame) -> Iterator[str]:
    for (backbone, dataset), seeds in results.groupby(["backbone", "dataset"])["seed"]:
        if not len(seeds) == seeds.nunique() == SEEDS:
            yield (
                f"{quoted(str(backbone))} on {quoted(str(dataset))} has {len(seeds)} results with {seeds.nunique()} different seeds;"
                f" exactly {SEEDS} are needed."
            )


def judge_metrics(results: pd.DataFrame) -> Iterator[str]:
    """Yield a fault for each dataset that is measured by several metrics, also in different submissions."""
    for dataset, lines in results.groupby("dataset"):
        used = sorted(set(lines["metric"]))
        if len(used) > 1:
            yield f"{quoted(str(dataset))} is measured by {', '.join(map(quoted, used))}; use one metric per dataset."


WORDS = {
    **dict.fromkeys(("json_invalid", "dict_type"), "is not a JSON object"),
    "missing": "is missing",
    "string_too_short": "is empty",
    "string_type": "is not a text (write `N/A` if there is nothing to say)",
    **dict.fromkeys(("float_parsing", "float_type", "finite_number"), "is not a number"),
}
"""What is wrong with a value, by pydantic's name for it."""


def _words(fault: Mapping[str, Any]) -> str:
    """Return what is wrong with a value, in the words of people who do not know pydantic."""
    message: str = fault["msg"].removeprefix("Value error, ").replace("Input should be", "should be")
    return WORDS.get(fault["type"], message.replace("'", "`"))


def _place(fault: Mapping[str, Any]) -> str:
    keys = [f"number {key + 1}" if isinstance(key, int) else f"`{key}`" for key in reversed(fault["loc"])]
    return " of ".join([*keys, f"`{INFO}`"])


def quoted(text: str) -> str:
    """Return text as a code span of Markdown, which it cannot end."""
    return f"`{_plain(text)}`" if text else "nothing"


def _plain(text: str) -> str:
    """Return text that cannot end the code span that it is put into."""
    shown = " ".join(text.replace("`", "'").split())
    return shown if len(shown) <= 60 else shown[:59] + "…"
