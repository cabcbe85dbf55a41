"""Fairness that can be checked: commitments at the start, a register and receipts during the challenge, and their verification."""

__all__ = [
    "commitments",
    "disclosure",
    "drand",
    "draws",
    "events",
    "hashing",
    "id_lists",
    "ladder",
    "manifests",
    "membership",
    "parts",
    "pseudonyms",
    "published_format",
    "receipts",
    "recording",
    "register",
    "seal",
    "signing",
    "succession",
    "verify",
]
