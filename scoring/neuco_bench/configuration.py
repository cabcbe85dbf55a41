"""NeuCo-Bench's configuration: its keys, in its nested form or in the flat one of the paper's Appendix B.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from scoring.errors import OrganizerError
from scoring.inputs.documents import read_yaml

FLAT = ("batch_size", "epochs", "learning_rate", "device")  # probe parameters that may be given at the top
SWITCHES = {
    "standardize_embeddings": True,
    "normalize_labels": True,
    "enable_plots": True,
    "update_leaderboard": False,
    "output_fold_results": False,
    "store_probes": False,
}
KEYS = ("k_folds", "probe_type", "probe_params", "embedding_dim", "task_filter", *SWITCHES)


@dataclass(frozen=True, kw_only=True)
class StandaloneSettings:
    """A checked configuration.

    Attributes:
        k_folds: Number K of random splits.
        probe_type: Name of the probe, see :mod:`scoring.probes.registry`.
        probe_params: Its parameters, checked by the probe.
        embedding_dim: Dimension N; narrower embeddings are padded with zeros. None takes what the file has.
        standardize_embeddings: Whether embeddings are scaled by one global mean and standard deviation.
        normalize_labels: Whether labels are scaled to [0, 1].
        enable_plots: Whether plots are drawn.
        update_leaderboard: Whether the runs of the phase are ranked afterwards.
        output_fold_results: Whether the results hold each fold's score.
        store_probes: Whether a probe trained on all samples is stored per task.
        task_filter: Tasks to score; None for all.
        raw: The configuration as it was read; the results carry it.
        warnings: What was odd about it.
    """

    k_folds: int
    probe_type: str = "linear"
    probe_params: Mapping[str, Any] = field(default_factory=dict)
    embedding_dim: int | None = None
    standardize_embeddings: bool = True
    normalize_labels: bool = True
    enable_plots: bool = True
    update_leaderboard: bool = False
    output_fold_results: bool = False
    store_probes: bool = False
    task_filter: tuple[str, ...] | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def read_settings(path: Path) -> StandaloneSettings:
    """Read a configuration file.

    Raises:
        OrganizerError: If it cannot be read or a value is wrong.
    """
    import yaml

    try:
        document = read_yaml(path.read_text("utf-8-sig"))
    except OSError as error:
        raise OrganizerError(
            f"The configuration {path} cannot be read: {error.strerror}.",
            cure="Give a YAML file with --config; config/kin/neuco-bench.yaml is an example.",
            code="standalone.no_config",
        ) from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise OrganizerError(
            f"The configuration {path} is not YAML.", cure="Correct it.", code="standalone.not_yaml"
        ) from error
    return parse_settings(document)


def parse_settings(document: object) -> StandaloneSettings:
    """Check a configuration. Keys that nobody knows are passed over, as NeuCo-Bench does, and warned about.

    Raises:
        OrganizerError: If a value is wrong or ``k_folds`` is missing.
    """
    if not isinstance(document, Mapping):
        raise _wrong("The configuration", document, "keys with values, such as k_folds: 40")
    raw = {str(key): value for key, value in document.items()}
    values = dict(raw)
    warnings: list[str] = []
    if "store_models" in values:  # its name in older versions
        values.setdefault("store_probes", values.pop("store_models"))
    params = values.get("probe_params") or {}
    if not isinstance(params, Mapping):
        raise _wrong("probe_params", params, "keys with values, such as epochs: 20")
    flat = {key: values.pop(key) for key in FLAT if key in values}
    params = {**flat, **params}
    warnings.extend(_unknown(values))
    if "k_folds" not in values:
        raise OrganizerError(
            "The configuration does not say k_folds.",
            cure="Add the number of random splits, such as k_folds: 40.",
            code="standalone.missing_key",
        )
    probe_type = values.get("probe_type") or "linear"
    if probe_type == "linear" and "epochs" not in params:
        warnings.append(
            "The configuration does not say epochs: 10, NeuCo-Bench's default; challenges train for 20."
        )
    device = str(params.get("device", "cpu"))
    if probe_type != "mlp" and device not in {"cpu", "auto"}:
        warnings.append(
            f"device {device} has no effect on the probe {probe_type}: it is trained on the processor."
        )
    return StandaloneSettings(
        k_folds=_whole(values["k_folds"], "k_folds"),
        probe_type=str(probe_type),
        probe_params=params,
        embedding_dim=_dim(values.get("embedding_dim")),
        task_filter=_tasks(values.get("task_filter")),
        raw=raw,
        warnings=tuple(warnings),
        **{key: _switch(values, key) for key in SWITCHES},
    )


def _unknown(values: Mapping[str, Any]) -> list[str]:
    warnings = []
    for key in values:
        if key not in KEYS:
            near = get_close_matches(key, (*KEYS, *FLAT), n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            warnings.append(f"The configuration's key {key!r} is unknown and has no effect{hint}")
    return warnings


def _whole(value: object, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _wrong(key, value, "a whole number of at least 1")
    return value


def _dim(value: object) -> int | None:
    return None if value is None else _whole(value, "embedding_dim")


def _switch(values: Mapping[str, Any], key: str) -> bool:
    value = values.get(key)
    if value is None:
        return SWITCHES[key]
    if not isinstance(value, bool):
        raise _wrong(key, value, "true or false")
    return value


def _tasks(value: object) -> tuple[str, ...] | None:
    if value is None or value is False:
        return None
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(task, str) for task in value):
        raise _wrong("task_filter", value, "a list of task names, or false for all")
    return tuple(value)


def _wrong(what: str, value: object, expected: str) -> OrganizerError:
    return OrganizerError(
        f"{what} is {str(value)[:60]!r}, not {expected}.",
        cure="Correct the configuration.",
        code="standalone.bad_value",
    )
