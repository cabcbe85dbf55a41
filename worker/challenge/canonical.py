"""The canonical form of a value as bytes, from which hashes, records and commitments are made."""

from __future__ import annotations

import json
from typing import Any


def canonical(document: Any) -> bytes:
    """Write a JSON value in its one canonical form: sorted keys, no spaces, ASCII; floats in their shortest exact form.

    Raises:
        ValueError: For NaN and infinities, which JSON does not have.
    """
    return json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()
