"""Fairness that can be checked: commitments at the start, receipts on the way, and the verification of all of it."""

__all__ = ["canonical", "commitments", "receipts", "recording", "verify"]
