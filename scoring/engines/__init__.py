"""Engines: they turn a row set into fold scores, on this machine's cores, on a GPU or on a cluster.

``torch``, ``reference`` and ``ray`` load PyTorch or Ray, so they are imported only if one of them was chosen.
"""

from scoring.engines.base import TOLERANCE, Engine, Unit, ignore
from scoring.engines.local import LocalEngine, available_cores, train_in_order
from scoring.engines.registry import CHUNK, EngineName, make_engine

__all__ = [
    "CHUNK",
    "TOLERANCE",
    "Engine",
    "EngineName",
    "LocalEngine",
    "Unit",
    "available_cores",
    "ignore",
    "make_engine",
    "ray",
    "reference",
    "registry",
    "torch",
    "train_in_order",
]
