"""The settings of a challenge that uses a practice chain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from worker.fairness.drand import Chain


def drawing(folder: Path, rounds: Chain, *servers: str, notice_s: float) -> dict[str, Any]:
    """Return the settings of a challenge that uses a practice chain."""
    path = folder / "chain.json"
    path.write_text(json.dumps(rounds.to_json()))
    settings = {
        "beacon": "drand",
        "beacon_notice": notice_s,
        "drand_chain": str(path),
        "drand_servers": list(servers),
    }
    return {"fairness": settings}
