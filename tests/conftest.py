"""Hypothesis for the whole suite: the same examples in every run, on a machine of any speed; a search for new ones is a profile of its own.

Search at random only where somebody looks at the outcome: ``pytest --hypothesis-profile=search``, or ``make fuzz``.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("search", derandomize=False, deadline=None, print_blob=True, max_examples=1000)
settings.load_profile("repeatable")
