"""Probes: small models that are trained on frozen embeddings to measure what these encode; see :mod:`scoring.probes.registry`."""

__all__ = ["linear", "measures", "mlp", "probe", "registry", "ridge"]
