"""An entry: one revealed score, always in the form of format 1, whatever the format of the reveal."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

from scoring.scorecard import folds_from_json
from worker.fairness import events, receipts


def of_event(commitment: str, fields: events.Fields) -> dict[str, Any]:
    """Return the entry of an event that registered a score."""
    return {
        "submission": fields["submission"],
        "team": fields["team"],
        "commitment": commitment,
        "opens": commitment,
        "record": {
            "submission": fields["submission"],
            "phase": fields["phase"],
            "content_hash": fields["content"],
            "protocol_hash": fields["protocol"],
            "scored_at": fields["at"],
            "cells": fields["cells"],
            "q_mean": fields["q_mean"],
            "engines": tuple(fields.get("engines", ())),
        },
    }


def of_format_1(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of a reveal without a register, with the values to which its receipt commits."""
    return {
        **entry,
        "opens": receipts.commitment_of(entry["record"], bytes.fromhex(entry["nonce"])),
        "record": compact(entry["record"]),
    }


def compact(scored: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a score with its folds as an array, because a list takes four times the memory; a score without folds is unchanged."""
    if "cells" not in scored:
        return scored
    cells = {
        task: {**cell, "folds": array("d", folds_from_json(cell["folds"]))}
        for task, cell in scored["cells"].items()
    }
    return {**scored, "cells": cells}
