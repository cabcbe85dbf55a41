"""Probes by name: the built-in ones, and those that other packages provide.

A package adds a probe with an entry point in the group ``neuco_worker.probes``. The entry point's name is the value for ``probe_type``; its
object is a subclass of :class:`~scoring.probes.probe.Probe`::

    [project.entry-points."neuco_worker.probes"]
    forest = "our_package:ForestProbe"
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import cast

from scoring.errors import OrganizerError
from scoring.probes.probe import Probe, ProbeSettings

GROUP = "neuco_worker.probes"
OWN: Mapping[str, str] = MappingProxyType(
    {
        "linear": "scoring.probes.linear:LinearProbe",
        "ridge": "scoring.probes.ridge:RidgeProbe",
        "svm": "scoring.probes.svm:SvmProbe",
        "mlp": "scoring.probes.mlp:MlpProbe",
    }
)


def probe_names() -> tuple[str, ...]:
    """List the names of all probes, without loading any."""
    return tuple(sorted({*OWN, *(entry.name for entry in entry_points(group=GROUP))}))


def make_probe(name: str, settings: ProbeSettings) -> Probe:
    """Make a probe; only its own module and its dependencies are imported.

    Raises:
        OrganizerError: If there is no such probe, its library is missing, or it refuses its parameters.
    """
    try:
        return _load(name)(settings)
    except ImportError as error:
        raise OrganizerError(
            f"The probe {name} needs {error.name or 'a library'}, which is not installed.",
            cure='Install it. For svm: pip install "neuco-worker[svm]".',
            code="probe.missing_library",
        ) from error


def _load(name: str) -> Callable[[ProbeSettings], Probe]:
    if name in OWN:  # an installed package cannot replace a built-in probe
        module, _, attribute = OWN[name].partition(":")
        return cast("Callable[[ProbeSettings], Probe]", getattr(importlib.import_module(module), attribute))
    found: tuple[EntryPoint, ...] = tuple(entry_points(group=GROUP, name=name))
    if not found:
        raise OrganizerError(
            f"There is no probe {name!r}.",
            cure=f"Set probe_type to one of: {', '.join(probe_names())}.",
            code="probe.unknown",
        )
    return cast("Callable[[ProbeSettings], Probe]", found[0].load())
