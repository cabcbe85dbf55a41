"""Fairness that can be checked: commitments at the start, a register and receipts during the challenge, and their verification."""

__all__ = [
    "beacon",
    "commitments",
    "decisions",
    "disclosure",
    "documents",
    "drand",
    "events",
    "id_lists",
    "manifests",
    "membership",
    "places",
    "published",
    "receipts",
    "recording",
    "register",
    "replay",
]
