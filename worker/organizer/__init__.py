"""What an organizer does with a challenge: create, check, rehearse, decide, rescore, reveal, and back up.

Nothing is imported here, because some of its modules run as root in scripts that should start at once.
"""

__all__ = [
    "applying",
    "archiving",
    "board_by_hand",
    "bundle",
    "bundle_check",
    "configuration_text",
    "decisions",
    "demo",
    "disclosure",
    "doctor",
    "listing",
    "rehearsal",
    "renaming",
    "rescoring",
    "reveal",
    "scaffold",
    "service",
    "session",
]
