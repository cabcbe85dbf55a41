"""What a team is told and when, and whose turn it is. It imports nothing itself, like the rooms that use it."""

__all__ = ["answers", "turns"]
