"""The base of all published documents, which are both written and read with their models, so that writer and reader cannot differ."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Number = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]


class Document(BaseModel):
    """A published document, or a part of one: no key may be missing, unknown or of another type."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    def to_json(self) -> dict[str, Any]:
        """Return it as it is published, hashed and signed."""
        return self.model_dump(mode="json", by_alias=True)

    def file_text(self) -> str:
        """Return the text of its file."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"
