"""NeuCo-Bench's configuration, in its nested form or in the flat form of the paper's Appendix B.2."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from scoring.errors import OrganizerError
from scoring.inputs.documents import read_yaml

FLAT = ("batch_size", "epochs", "learning_rate", "device")  # probe parameters that may be at the top level
WHOLE = "a whole number of at least 1"
Switch = Annotated[bool, Field(description="true or false")]


class StandaloneSettings(BaseModel):
    """A checked configuration.

    A field's description says what its value must be. If several values are wrong, the error names the first in this order.

    Attributes:
        k_folds: Number K of random splits.
        embedding_dim: Dimension N; narrower embeddings are padded with zeros. None takes the file's.
        task_filter: Tasks to score; None for all.
        standardize_embeddings: Whether embeddings are scaled by one global mean and standard deviation.
        normalize_labels: Whether labels are scaled to [0, 1].
        enable_plots: Whether plots are drawn.
        update_leaderboard: Whether the runs of the phase are ranked afterwards.
        output_fold_results: Whether the results hold each fold's score.
        store_probes: Whether a probe trained on all samples is stored per task.
        probe_type: Name of the probe, see :mod:`scoring.probes.registry`.
        probe_params: Its parameters, checked by the probe.
        raw: The configuration as it was read, for the results.
        warnings: What was ignored or renamed.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    k_folds: int = Field(ge=1, description=WHOLE)
    embedding_dim: int | None = Field(None, ge=1, description=WHOLE)
    task_filter: tuple[str, ...] | None = Field(None, description="a list of task names, or false for all")
    standardize_embeddings: Switch = True
    normalize_labels: Switch = True
    enable_plots: Switch = True
    update_leaderboard: Switch = False
    output_fold_results: Switch = False
    store_probes: Switch = False
    probe_type: str = "linear"
    probe_params: Mapping[Any, Any] = {}
    raw: Mapping[str, Any] = {}
    warnings: tuple[str, ...] = ()

    @field_validator("task_filter", mode="before")
    @classmethod
    def _tasks(cls, value: object) -> object:
        if value is False:
            return None
        return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


SAMPLE = {
    "k_folds": 10,
    "probe_type": "linear",
    "probe_params": {"batch_size": 64, "epochs": 20, "learning_rate": 0.001},
    "output_fold_results": True,
    "enable_plots": False,
    "update_leaderboard": True,
}
"""The values of ``config/kin/neuco-bench.yaml``, for a run without a configuration file."""

KEYS = tuple(key for key in StandaloneSettings.model_fields if key not in {"raw", "warnings"})


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
            cure="Name a YAML file with --config. config/kin/neuco-bench.yaml is an example.",
            code="standalone.no_config",
        ) from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise OrganizerError(
            f"The configuration {path} is not YAML.", cure="Correct it.", code="standalone.not_yaml"
        ) from error
    return parse_settings(document)


def parse_settings(document: object) -> StandaloneSettings:
    """Check a configuration. Unknown keys are ignored, as NeuCo-Bench does, with a warning.

    Raises:
        OrganizerError: If a value is wrong or ``k_folds`` is missing.
    """
    if not isinstance(document, Mapping):
        raise _wrong("The configuration", document, "keys with values, such as k_folds: 40")
    raw = {str(key): value for key, value in document.items()}
    values = dict(raw)
    warnings: list[str] = []
    params = values.get("probe_params") or {}
    if not isinstance(params, Mapping):
        raise _wrong("probe_params", params, "keys with values, such as epochs: 20")
    flat = {key: values.pop(key) for key in FLAT if key in values}
    params = {**flat, **params}
    warnings.extend(_unknown(values))
    if "k_folds" not in values:
        raise OrganizerError(
            "The configuration has no key k_folds.",
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
    given = {key: values[key] for key in KEYS if values.get(key) is not None}
    given |= {"probe_type": str(probe_type), "probe_params": params, "raw": raw, "warnings": tuple(warnings)}
    try:
        return StandaloneSettings.model_validate(given)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        raise _wrong(key, values[key], str(StandaloneSettings.model_fields[key].description)) from None


def _unknown(values: Mapping[str, Any]) -> list[str]:
    warnings = []
    for key in values:
        if key not in KEYS:
            near = get_close_matches(key, (*KEYS, *FLAT), n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            warnings.append(f"The configuration's key {key!r} is unknown and has no effect{hint}")
    return warnings


def _wrong(key: str, value: object, expected: str) -> OrganizerError:
    return OrganizerError(
        f"{key} is {str(value)[:60]!r}, not {expected}.",
        cure="Correct the value in the configuration.",
        code="standalone.bad_value",
    )
