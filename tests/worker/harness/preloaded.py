"""What the fork server does once, so that no fork does it again; a process of the tests does not import this."""

from __future__ import annotations

import gc

import sqlalchemy.dialects.sqlite  # noqa: F401 - each fork would import it for its database

from leaderboard.rendering.assets import templates

for name in templates().list_templates():
    templates().get_template(name)  # each fork would compile it
gc.set_threshold(50_000)
gc.freeze()  # a fork looks for garbage only in what it makes itself, and copies fewer pages
