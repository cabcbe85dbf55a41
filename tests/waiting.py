"""How tests wait for other processes and threads."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_S = 300.0
"""Real seconds after which a test gives up waiting for something that is certain to come, however slow the machine is.

Only a defect takes as long. The time-out of a whole test, in ``pyproject.toml``, is longer.
"""


def until(condition: Callable[[], object], explain: Callable[[], object] = lambda: "it did not come") -> None:
    """Wait in real time until a condition holds; it must be one that stays true.

    Raises:
        AssertionError: If it does not come.
    """
    ends = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < ends, explain()
        time.sleep(0.05)
