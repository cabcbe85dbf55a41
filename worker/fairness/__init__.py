"""Fairness that can be checked: commitments at the start, a register and receipts during the challenge, and their verification."""

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
