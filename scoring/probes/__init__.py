"""Probes: small models that are trained on frozen embeddings to measure what these encode; see :mod:`scoring.probes.probe`."""

__all__ = ["measures", "probe"]
