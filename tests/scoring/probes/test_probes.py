"""Probes, their registry, and their metrics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scoring
from scoring.errors import OrganizerError
from scoring.metrics import complexity
from scoring.probes import ProbeName
from scoring.probes.measures import confusion, measures, score
from scoring.probes.probe import ProbeInput, make_probe, probe_class
from scoring.scorecard import ALWAYS
from scoring.tasks import TaskType
from tests.later import GROUP, Later

pytestmark = GROUP
torch = Later("torch")
linear_model = Later("sklearn.linear_model")
metrics = Later("sklearn.metrics")
model_selection = Later("sklearn.model_selection")
classification = Later("torchmetrics.classification")
network = Later("scoring.probes.network")

KINDS = tuple(TaskType)
QUICK = {
    "linear": {"epochs": 3, "learning_rate": "2e-2", "batch_size": 16},
    "ridge": {"alphas": [0.1, 10]},
    "svm": {"C_start_end": [0.1, 10], "opt_params": {"n_iter": 2}},
    "mlp": {"epochs": 3, "learning_rate": 0.02, "batch_size": 16, "hidden_widths": [8]},
}


def make_input(kind: TaskType, *, samples: int = 60, dim: int = 5, name: str = "task") -> ProbeInput:
    """Make a task that can mostly be learned."""
    generator = np.random.RandomState(7)
    rows = generator.standard_normal((samples, dim)).astype(np.float32)
    signal = rows @ generator.standard_normal((dim, 3)) + 0.2 * generator.standard_normal((samples, 3))
    classes: tuple[str, ...] = ()
    if kind is TaskType.REGRESSION:
        targets = ((signal[:, 0] - signal[:, 0].min()) / np.ptp(signal[:, 0])).astype(np.float32)
    elif kind is TaskType.CLASSIFICATION:
        targets = (signal[:, 0] > 0).astype(np.float32)
    else:
        classes = ("a", "b", "c")
        targets = signal.argmax(axis=1) if kind is TaskType.MULTICLASS else (signal > 0).astype(np.float32)
    return ProbeInput(name=name, kind=kind, rows=rows, targets=targets, classes=classes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", get_args(ProbeName))
def test_every_probe_learns_every_kind_of_task(name: str, kind: TaskType) -> None:
    """Each gives K folds with the splits of ShuffleSplit(random_state=seed) and scores that follow from its predictions, repeatably.

    The caller's own generator of torch stays where it was.
    """
    data = make_input(kind)
    before = torch.get_rng_state()
    first, again = (
        make_probe(name, QUICK[name], seed=3, threads=threads).train(data, folds=3, details=True)[0]
        for threads in (1, 2)
    )
    assert torch.equal(torch.get_rng_state(), before)
    splits = model_selection.ShuffleSplit(3, test_size=0.1, random_state=3).split(data.rows)
    for fold, repeated, (train, test) in zip(first, again, splits, strict=True):
        np.testing.assert_array_equal(fold.test, test)
        np.testing.assert_array_equal(fold.train, train)
        assert fold.score == pytest.approx(score(kind, fold.predictions, data.targets[test]), abs=1e-6)
        assert fold.score == max(fold.history) or name == "ridge"
        assert fold.score == repeated.score
        assert len(fold.train_predictions) == len(train)
        assert (
            len(fold.train_losses)
            == len(fold.test_losses)
            == (len(fold.history) if probe_class(name).has_epochs else 0)
        )
    chance = {
        TaskType.REGRESSION: 0.0,
        TaskType.CLASSIFICATION: 0.5,
        TaskType.MULTICLASS: 0.3,
        TaskType.MULTILABEL: 0.5,
    }
    if name in {"ridge", "mlp"} and kind is not TaskType.REGRESSION:
        assert np.mean([fold.score for fold in first]) > chance[kind]


def test_a_caller_who_only_wants_embeddings_from_torch_gets_the_same_scores() -> None:
    """Such code often works without gradients, with another type of numbers or on another device; so do these, also with one thread."""
    data = make_input(TaskType.MULTICLASS)

    def trained() -> tuple[list[float], list[float]]:
        probe = make_probe("mlp", QUICK["mlp"], threads=1)
        [folds] = probe.train(data, folds=2)
        return [fold.score for fold in folds], probe.refit(data)[-1][0].ravel().tolist()

    expected = trained()
    for settings_of_caller in (torch.no_grad, torch.inference_mode, lambda: torch.device("meta")):
        with settings_of_caller():
            assert trained() == expected
    torch.set_default_dtype(torch.float64)
    try:
        assert trained() == expected
    finally:
        torch.set_default_dtype(torch.float32)


LOSSES = {
    TaskType.REGRESSION: "MSELoss",
    TaskType.CLASSIFICATION: "BCEWithLogitsLoss",
    TaskType.MULTICLASS: "CrossEntropyLoss",
    TaskType.MULTILABEL: "BCEWithLogitsLoss",
}


@pytest.mark.parametrize("kind", KINDS)
def test_losses_and_scores_are_those_of_a_torch_loop(kind: TaskType) -> None:
    """Torch's layer, loss and AdamW give the same curves, with NeuCo-Bench's stream or, for several outputs, with a seed for each fold."""
    data = make_input(kind)
    probe = make_probe("linear", QUICK["linear"])
    [[fold]] = probe.train(data, folds=1, details=True)
    rows, targets = torch.from_numpy(data.rows), torch.as_tensor(data.targets)
    train, test = (torch.from_numpy(part.astype(np.int64)) for part in (fold.train, fold.test))
    torch.manual_seed(network.fold_seed(42, data.name, 0) if data.kind.has_columns else 42)
    layer = torch.nn.Linear(rows.shape[1], data.outputs)
    model = layer if data.kind.has_columns else torch.nn.Sequential(layer, torch.nn.Flatten(0))
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.02)
    criterion = getattr(torch.nn, LOSSES[kind])()
    curves: tuple[list[float], list[float]] = ([], [])
    scores = []
    for _ in range(3):
        losses = []
        if not data.kind.has_columns:
            torch.empty((), dtype=torch.int64).random_()  # a DataLoader's base seed
        for batch in torch.split(train[torch.randperm(len(train))], 16):
            optimizer.zero_grad()
            loss = criterion(model(rows[batch]), targets[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if not data.kind.has_columns:
            torch.empty((), dtype=torch.int64).random_()
            torch.randperm(len(test))
        outputs = model(rows[test]).detach()
        curves[0].append(float(np.mean(losses)))
        curves[1].append(criterion(outputs, targets[test]).item())
        scores.append(score(kind, outputs.numpy().astype(np.float64), data.targets[fold.test]))
    assert fold.train_losses == pytest.approx(curves[0], abs=1e-5)
    assert fold.test_losses == pytest.approx(curves[1], abs=1e-5)
    assert fold.history == pytest.approx(scores, abs=1e-5)


SHAPES = [(60, 5), (200, 40), (300, 290), (41, 70), (60, 60), (100, 400)]


@pytest.mark.parametrize("constant", [0, 2])
@pytest.mark.parametrize(("samples", "dim"), SHAPES)
def test_ridge_agrees_with_a_fit_per_fold_task_and_penalty(samples: int, dim: int, constant: int) -> None:
    """Predictions are those of scikit-learn's Ridge, fitted to the training part with the penalty of the least direct GCV criterion."""
    alphas = [0.1, 3.0, 100.0, 1e4]
    tasks = [make_input(kind, samples=samples, dim=dim, name=kind.value) for kind in KINDS]
    tasks[0].rows[:, :constant] = 0.5
    tasks = [replace(data, rows=tasks[0].rows) for data in tasks]
    trained = make_probe("ridge", {"alphas": alphas}).train(*tasks, folds=4, details=True)
    for folds in zip(*trained, strict=True):  # one of each task, and all have the same training part
        train = folds[0].train
        rows = tasks[0].rows[train].astype(np.float64)
        hats = {alpha: _hat_matrix(rows, alpha) for alpha in alphas}
        for data, fold in zip(tasks, folds, strict=True):
            np.testing.assert_array_equal(fold.train, train)
            targets = data.columns if data.kind is TaskType.REGRESSION else 2.0 * data.columns - 1.0
            criteria = {alpha: _criterion(hat, targets[train]) for alpha, hat in hats.items()}
            best = min(alphas, key=criteria.__getitem__)
            assert fold.score == fold.history[alphas.index(best)]
            model = linear_model.Ridge(alpha=best).fit(rows, targets[train])
            for part, predictions in ((fold.test, fold.predictions), (train, fold.train_predictions)):
                plain = model.predict(data.rows[part].astype(np.float64)).reshape(predictions.shape)
                if data.kind is not TaskType.REGRESSION:
                    plain += np.sign(plain)
                np.testing.assert_allclose(predictions, plain, atol=1e-9)


@pytest.mark.parametrize(("samples", "scales"), [(60, [1e6] * 100), (60, [1e9, 1.0]), (2000, [1e9, 1.0])])
def test_ridge_is_exact_whatever_the_scale_of_the_values(samples: int, scales: list[float]) -> None:
    """Scores and stored weights are those of scikit-learn's singular values, also where a Gram matrix would lose small values.

    A triangular factor is made of a thousand rows at a time.
    """
    generator = np.random.RandomState(3)
    rows = (generator.standard_normal((samples, len(scales))) * scales).astype(np.float32)
    targets = (rows[:, -1] / scales[-1] + generator.standard_normal(samples)).astype(np.float32)
    data = ProbeInput(name="task", kind=TaskType.REGRESSION, rows=rows, targets=targets)
    wide = rows.astype(np.float64)
    probe = make_probe("ridge", {"alphas": [0.1]})
    model = linear_model.Ridge(alpha=0.1, solver="svd")
    [folds] = probe.train(data, folds=3, details=True)
    for fold in folds:
        predictions = model.fit(wide[fold.train], targets[fold.train]).predict(wide[fold.test])
        np.testing.assert_allclose(fold.predictions, predictions, rtol=1e-6)
    [(weights, _)] = probe.refit(data)
    np.testing.assert_allclose(weights[0], model.fit(wide, targets).coef_, rtol=1e-5)


def _hat_matrix(rows: np.ndarray, alpha: float) -> np.ndarray:
    """Return what turns targets into their fitted values."""
    centered = rows - rows.mean(axis=0)
    gram = centered.T @ centered + alpha * np.eye(rows.shape[1])
    return centered @ np.linalg.solve(gram, centered.T) + 1 / len(rows)


def _criterion(hat: np.ndarray, targets: np.ndarray) -> float:
    """Compute the criterion of generalized cross-validation from the hat matrix."""
    count = len(hat)
    return float(count * np.sum((targets - hat @ targets) ** 2) / (count - np.trace(hat)) ** 2)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("probe", ["linear", "ridge"])
def test_a_task_scores_alike_alone_and_among_others(probe: str) -> None:
    """So do tasks of the same samples whose names are not next to each other, and tasks with missing labels."""
    generator = np.random.RandomState(5)
    rows = generator.standard_normal((80, 6))
    labels = pd.DataFrame(rows @ generator.standard_normal((6, 4)), columns=list("abcd"))
    labels.loc[:9, ["b", "d"]] = np.nan
    options = {"probe": probe, "folds": 4, "standardize_embeddings": False}
    together = scoring.score(rows, labels, **options).to_frame()
    assert list(together.index) == list("abcd")
    assert together["samples"].to_list() == [80, 70, 80, 70]
    tasks = "abcd" if probe == "ridge" else "a"  # one random stream runs through the tasks of linear probes
    for name in tasks:
        alone = scoring.score(rows, labels[[name]], **options).to_frame()
        np.testing.assert_allclose(together["folds"][name], alone["folds"][name], atol=1e-9)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tasks_with_other_groups_are_split_on_their_own(tmp_path: Path) -> None:
    """Ridge trains tasks of the same samples together, but only if their groups are the same, too."""
    generator = np.random.RandomState(6)
    ids = pd.Index([f"p_{number:02}" for number in range(80)], name="id")
    rows = pd.DataFrame(generator.standard_normal((80, 6)), index=ids)
    for name, size in (("a", 4), ("b", 8)):
        groups = [f"g{number // size}" for number in range(80)]
        labels = pd.DataFrame({"label": rows.sum(axis=1) + generator.standard_normal(80), "group": groups})
        # It has no embedding; files with the same samples must have the same groups.
        labels.loc[f"only {name}"] = 0.5, "g0"
        labels.to_csv(tmp_path / f"{name}__regression.csv", index_label="id")
    options = {"probe": "ridge", "folds": 4, "progress": False}
    together = scoring.score(rows, tmp_path, **options).to_frame()
    for name in "ab":
        alone = scoring.score(rows, tmp_path, task_filter=[name], **options).to_frame()
        np.testing.assert_allclose(together["folds"][name], alone["folds"][name], atol=1e-9)


def test_default_networks_have_the_papers_sizes() -> None:
    """At N = 1,024 they have about 170 and 464 times the parameters of a linear probe."""
    for layers, ratio in ((1, 170), (2, 464)):
        probe = make_probe("mlp", {"hidden_layers": layers})
        widths = (1024, *probe.hidden, 1)  # type: ignore[misc]
        count = complexity(np.ones((1, 1024), dtype=np.float32), widths, 1.0).probe_parameters
        assert count == pytest.approx(ratio * 1025, rel=0.003)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("linear", {"epoch": 5}),
        ("linear", {"epochs": 2.5}),
        ("linear", {"learning_rate": "fast"}),
        ("ridge", {"alphas": []}),
        ("ridge", {"alphas": [-1]}),
        ("svm", {"C_start_end": [1, 0.1]}),
        ("svm", {"opt_params": 3}),
        ("svm", {"C_start_end": [0.1, 10**400]}),
        ("linear", {"learning_rate": 10**400}),
        ("mlp", {"hidden_layers": 3}),
        ("mlp", {"hidden_widths": [0]}),
    ],
)
def test_wrong_parameters_are_refused(name: str, params: dict) -> None:
    """An unknown or invalid parameter is refused before training."""
    with pytest.raises(OrganizerError):
        make_probe(name, params)


LABELS = st.lists(st.integers(0, 3), min_size=4, max_size=25)


@given(LABELS, st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_macro_f1_has_torchmetrics_edge_rules(labels: list[int], seed: int) -> None:
    """Several classes and several labels are scored as in torchmetrics, also if classes are absent."""
    generator = np.random.RandomState(seed)
    truth = np.array(labels)
    outputs = generator.standard_normal((len(labels), 4))
    expected = classification.MulticlassF1Score(4, average="macro")(
        torch.from_numpy(outputs), torch.from_numpy(truth)
    ).item()
    assert score(TaskType.MULTICLASS, outputs, truth) == pytest.approx(expected, abs=1e-6)
    many = (generator.random_sample((len(labels), 4)) > 0.6).astype(np.float32)
    many[:, 3] = 0
    outputs = outputs.astype(np.float32).astype(np.float64)
    expected = classification.MultilabelF1Score(4, average="macro")(
        torch.from_numpy(outputs.astype(np.float32)), torch.from_numpy(many).long()
    ).item()
    assert score(TaskType.MULTILABEL, outputs, many) == pytest.approx(expected, abs=1e-6)


@given(st.integers(2, 40), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=60)
def test_metrics_agree_with_scikit_learn(size: int, seed: int, coarse: bool) -> None:
    """All metrics of the paper agree with scikit-learn, which NeuCo-Bench uses, also with ties."""
    generator = np.random.RandomState(seed)
    truth = np.concatenate([[0, 1], generator.randint(0, 2, size - 2)]).astype(np.float32)
    outputs = generator.standard_normal(size) + truth
    outputs = np.round(outputs) - 0.5 if coarse else outputs
    outputs[0] = -1.5  # one outside [0, 1], so all are logits
    decided = outputs > 0
    assert measures(TaskType.CLASSIFICATION, outputs, truth) == pytest.approx(
        {
            "f1": metrics.f1_score(truth, decided, zero_division=0),
            "precision": metrics.precision_score(truth, decided, zero_division=0),
            "recall": metrics.recall_score(truth, decided, zero_division=0),
            "accuracy": metrics.accuracy_score(truth, decided),
            "roc_auc": metrics.roc_auc_score(truth, outputs),
        }
    )
    np.testing.assert_array_equal(
        confusion(TaskType.CLASSIFICATION, outputs, truth), metrics.confusion_matrix(truth, decided)
    )
    numbers = generator.permutation(size).astype(np.float64)  # they vary: the edge rules are torchmetrics'
    assert measures(TaskType.REGRESSION, outputs, numbers) == pytest.approx(
        {
            "r2": metrics.r2_score(numbers, outputs),
            "mse": metrics.mean_squared_error(numbers, outputs),
            "mae": metrics.mean_absolute_error(numbers, outputs),
        }
    )


@pytest.mark.filterwarnings("ignore:.* too few steps")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", QUICK)
def test_a_result_names_the_libraries_that_it_was_computed_with(name: ProbeName, kind: TaskType) -> None:
    """So it can be cited: those of every score, and what the probe needs besides for this type of task."""
    data = make_input(kind)
    needs = {"mlp": ["torch"], "svm": ["scikit-learn"], "linear": ["torch"] * kind.has_columns}.get(name, [])
    labels = {f"t__{kind.value}": data.columns if kind is TaskType.MULTILABEL else data.targets}
    result = scoring.score(data.rows, labels, name, folds=2, progress=False, **QUICK[name])
    assert [*result.to_dict()["versions"]] == ["python", *ALWAYS, *needs]
