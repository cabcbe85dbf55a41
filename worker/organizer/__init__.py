"""What an organizer does with a challenge: make it, check it, rehearse it, decide in it, rescore it, reveal it, and keep it safe.

It imports nothing by itself: some of its modules run as root, in scripts that should start at once.
"""

__all__ = [
    "archiving",
    "auditing",
    "board_by_hand",
    "bundle",
    "bundle_check",
    "committing",
    "comparing",
    "configuration_docs",
    "configuration_text",
    "decisions",
    "demo",
    "disclosure",
    "doctor",
    "generated_page",
    "listing",
    "planning",
    "rehearsal",
    "renaming",
    "rescoring",
    "reveal",
    "scaffold",
    "service_install",
    "session",
    "unit",
]
