"""Fairness that can be checked: commitments at the start, receipts on the way, the reveal at the end, and the verdict on all of it."""
