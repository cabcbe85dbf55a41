"""NeuCo-Bench's configuration, in its nested form or in the flat form of the paper's Appendix B.2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from scoring.documents import checked, read_yaml_file, whole
from scoring.errors import OrganizerError
from scoring.probes import PROBES, ProbeName
from scoring.protocol import MOST_NUMBERS, MOST_REPEATS

FLAT = ("batch_size", "epochs", "learning_rate", "device")  # probe parameters that may be at the top level
Switch = Annotated[bool, Field(description="true or false")]


def _names(value: object) -> object:
    if value is False:
        return None
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, (list, tuple)) else value


class StandaloneSettings(BaseModel):
    """A checked configuration; the defaults are those of NeuCo-Bench and of its sample configuration.

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
        probe_type: Name of the probe, one of :data:`scoring.probes.PROBES`.
        probe_params: Its parameters, checked by the probe.
        raw: The configuration as it was read, without ``device``, for the results.
        warnings: What was ignored or renamed.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    k_folds: int = whole(40, MOST_REPEATS)
    embedding_dim: int | None = whole(None, MOST_NUMBERS)
    task_filter: Annotated[tuple[str, ...] | None, BeforeValidator(_names)] = Field(
        None, description="a list of task names, or false for all"
    )
    standardize_embeddings: Switch = True
    normalize_labels: Switch = True
    enable_plots: Switch = True
    update_leaderboard: Switch = False
    output_fold_results: Switch = False
    store_probes: Switch = False
    probe_type: ProbeName = Field("linear", description=f"one of {', '.join(PROBES)}")
    probe_params: Mapping[Any, Any] = Field({}, description="keys with values, such as epochs: 20")
    raw: Mapping[str, Any] = {}
    warnings: tuple[str, ...] = ()


SAMPLE: dict[str, Any] = {
    "k_folds": 40,
    "probe_type": "linear",
    "probe_params": {"batch_size": 64, "epochs": 10, "learning_rate": 0.001},
    "output_fold_results": True,
    "enable_plots": False,
}
"""The values of ``config/researcher/neuco-bench.yaml``, for a run without a file: NeuCo-Bench's sample, with the scores of all folds."""

STORING = (
    "With store_probes, NeuCo-Bench draws random numbers after each task, so its numbers for the second and later tasks differ from these."
    " Without it, they are the same."
)
SEARCH_OPTIONS = {"n_iter", "random_state"}  # of the probe svm; NeuCo-Bench hands others on to BayesSearchCV
KEYS = tuple(key for key in StandaloneSettings.model_fields if key not in {"raw", "warnings"})


def read_settings(
    path: Path, *, folds: int | None = None, probe: str | None = None, epochs: int | None = None
) -> StandaloneSettings:
    """Read a configuration file; other arguments that are not None come before it.

    Raises:
        OrganizerError: If it cannot be read or a value is wrong.
    """
    document = read_yaml_file(
        path,
        code="standalone.no_config",
        hint="config/researcher/neuco-bench.yaml is an example for --config.",
    )
    if isinstance(document, Mapping):
        document = overridden(document, folds=folds, probe=probe, epochs=epochs)
    return parse_settings(document)


def parameters_of(probe: str) -> list[str]:
    """Return the names of the parameters that have an effect on a probe."""
    from scoring.probes.probe import probe_class

    chosen = probe_class(probe)
    return [name for name in chosen.parameters.model_fields if chosen.has_epochs or name not in FLAT]


def overridden(
    document: Mapping[Any, Any], *, folds: int | None, probe: str | None, epochs: int | None
) -> dict[Any, Any]:
    """Return a configuration with other values; of another probe, it keeps the parameters that this one has.

    Raises:
        OrganizerError: If the probe has no epochs.
    """
    from scoring.probes.probe import probe_class

    changed = dict(document)
    if folds is not None:
        changed["k_folds"] = folds
    params = changed.get("probe_params") or {}
    if not isinstance(params, Mapping):
        return changed  # it is refused later
    if probe is not None and probe != changed.get("probe_type", "linear"):
        known = parameters_of(probe)
        changed = {key: value for key, value in changed.items() if key not in FLAT or key in known}
        params = {key: value for key, value in params.items() if key in known}
        changed |= {"probe_type": probe, "probe_params": params}
    if epochs is not None:
        name = str(changed.get("probe_type", "linear"))
        if name in PROBES and not probe_class(name).has_epochs:
            raise OrganizerError(
                f"The probe {name} has no epochs.",
                hint="Leave --epochs out, or use a probe with epochs, such as linear.",
                code="standalone.no_epochs",
            )
        changed["probe_params"] = {**params, "epochs": epochs}
    return changed


def parse_settings(document: object, *, place: str = "the configuration") -> StandaloneSettings:
    """Check a configuration, or arguments if ``place`` is empty. Unknown keys are ignored, as NeuCo-Bench does, with a warning.

    Raises:
        OrganizerError: If a value is wrong.
    """
    if not isinstance(document, Mapping):
        raise OrganizerError(
            f"The configuration is {str(document)[:60]!r}, not keys with values.",
            hint="Write keys with values, such as k_folds: 40.",
            code="standalone.bad_value",
        )
    values = {str(key): value for key, value in document.items()}
    flat = {key: values.pop(key) for key in FLAT if key in values}
    given = {key: value for key, value in values.items() if key in KEYS and value is not None}
    if flat and isinstance(given.setdefault("probe_params", {}), Mapping):
        given["probe_params"] = {**flat, **given["probe_params"]}
    settings = checked(StandaloneSettings, given, place=place, code="standalone.bad_value")
    return settings.model_copy(
        update={
            "raw": _without_device(document),
            "warnings": (*_unknown(values), *_differences(settings, given)),
        }
    )


def _without_device(document: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the configuration as NeuCo-Bench repeats it in the results."""
    return {
        str(key): _without_device(value) if key == "probe_params" and isinstance(value, Mapping) else value
        for key, value in document.items()
        if key != "device"
    }


def _differences(settings: StandaloneSettings, given: Mapping[str, Any]) -> Iterator[str]:
    """Say which defaults count, and what is not as in NeuCo-Bench."""
    if "k_folds" not in given:
        yield "The configuration does not say k_folds: 40, the value of NeuCo-Bench's sample."
    if settings.probe_type == "linear" and "epochs" not in settings.probe_params:
        yield "The configuration does not say epochs: 10, NeuCo-Bench's default; challenges train for 20."
    if settings.store_probes:
        yield STORING
    if settings.probe_type == "svm":
        options = settings.probe_params.get("opt_params")
        unused = sorted(map(str, options.keys() - SEARCH_OPTIONS)) if isinstance(options, Mapping) else []
        if unused:
            yield f"The settings of svm are drawn at random, so these opt_params have no effect: {', '.join(unused)}."
    if settings.task_filter == ():
        yield "task_filter is an empty list, so no task is scored. Remove it to score all."
    if settings.k_folds == 1:
        yield "One fold has no standard deviation, so Q is 100 times the score, and means less than with more folds."


def _unknown(values: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(values.keys() - KEYS):
        near = get_close_matches(key, (*KEYS, *FLAT), n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        yield f"The configuration's key {key!r} is unknown and has no effect{hint}"
