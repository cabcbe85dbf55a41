"""``python -m worker.cli`` is ``neuco-worker``."""

from __future__ import annotations

from worker.cli.application import main

if __name__ == "__main__":
    main()
