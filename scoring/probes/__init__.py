"""Probes: what is trained on frozen embeddings to see what they hold. One registry, see :mod:`scoring.probes.registry`."""

__all__ = ["linear", "measures", "mlp", "probe", "registry", "ridge", "torch_loop"]
