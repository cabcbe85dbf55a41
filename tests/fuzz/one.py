"""One target under the fuzzer, in a process of its own: ``python -m tests.fuzz.one TARGET [libFuzzer's arguments]``."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(
    include=["scoring", "worker", "leaderboard", "zipfile"], enable_loader_override=False
):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Fuzz until libFuzzer's limits."""
    target = TARGETS[sys.argv[1]]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
