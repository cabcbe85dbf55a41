"""Fairness that can be checked: commitments at the start, a register and receipts on the way, and the verification of all of it."""

__all__ = [
    "canonical",
    "commitments",
    "disclosure",
    "drand",
    "draws",
    "events",
    "id_lists",
    "ladder",
    "manifests",
    "membership",
    "mixing",
    "parts",
    "pseudonyms",
    "receipts",
    "recording",
    "register",
    "seal",
    "signing",
    "succession",
    "verify",
]
