"""Probes: small models that are trained on frozen embeddings to measure what these encode; see :mod:`scoring.probes.probe`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

__all__ = ["PROBES", "ProbeName", "measures", "probe"]

ProbeName = Literal["linear", "ridge", "svm", "mlp"]
PROBES: Mapping[str, str] = {
    "linear": "scoring.probes.linear:LinearProbe",
    "ridge": "scoring.probes.ridge:RidgeProbe",
    "svm": "scoring.probes.svm:SvmProbe",
    "mlp": "scoring.probes.linear:MlpProbe",
}
"""The classes of all probes, by their names in the configuration; only the one that is used is imported."""
