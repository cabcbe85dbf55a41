"""Hypothesis in this room: no deadline per example, because the first call of compiled code compiles it."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("scoring", deadline=None, print_blob=True)
settings.load_profile("scoring")
