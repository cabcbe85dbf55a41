"""Engines: they turn a row set into fold scores, on this machine's cores, on a GPU or on a cluster.

``reference``, ``torch`` and ``ray`` load PyTorch or Ray, so they are imported only if one of them was chosen.
"""

from scoring.engines.base import Engine, Unit, ignore, never
from scoring.engines.fold_pool import train_in_order
from scoring.engines.local import LocalEngine, available_cores
from scoring.engines.registry import make_engine

__all__ = [
    "Engine",
    "LocalEngine",
    "Unit",
    "available_cores",
    "choice",
    "fold_block",
    "fold_memory",
    "fold_scheduler",
    "ignore",
    "make_engine",
    "never",
    "ray",
    "reference",
    "torch",
    "train_in_order",
]
