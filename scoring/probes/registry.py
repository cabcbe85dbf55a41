"""Probes by name: those that come along, and those that other packages offer.

A package adds a probe with an entry point in the group ``neuco_worker.probes``: its name is what ``probe_type`` says, its object takes a
:class:`~scoring.probes.probe.ProbeSettings` and gives a :class:`~scoring.probes.probe.Probe`::

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
    """List the probes there are, without loading any."""
    return tuple(sorted({*OWN, *(entry.name for entry in entry_points(group=GROUP))}))


def make_probe(name: str, settings: ProbeSettings) -> Probe:
    """Make a probe; only its own module and what that needs is imported.

    Raises:
        OrganizerError: If there is no such probe, a library is missing for it, or it refuses its parameters.
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
    if name in OWN:  # the protocol's names cannot be taken over by what happens to be installed
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
