"""The table of lies: what organizers who have all keys could tell, and where each lie must be found.

A lie changes a story of the liar's kit, and the kit then makes everything else consistent with it. Lies that change one field, one line
or one file are not here: ``test_fairness_mutations.py`` changes them all.
"""

from __future__ import annotations

from tests.acceptance.lie import Lie
from tests.acceptance.lies_about_decisions import DECISIONS
from tests.acceptance.lies_about_documents import DOCUMENTS
from tests.acceptance.lies_about_entries import ENTRIES

LIES: dict[str, Lie] = {**ENTRIES, **DECISIONS, **DOCUMENTS}
