"""Keeping a content to be published: a stored file is read in a child of its own and written as it is hashed, in parts."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

from worker.challenge.configuration import Configuration
from worker.challenge.setups import PhaseSetup
from worker.evaluation.evaluate_child import Order, Result, order_for
from worker.evaluation.stored import StoredFileAct
from worker.state import Transaction


class KeepContent(StoredFileAct):
    """Read a stored file and lay its content out in parts.

    Args:
        configuration: Limits.
        setup: The phase.
        file: The stored file.
        content_hash: What was scored; another content is not kept.
        place: Where the folder of the parts goes, whole or not at all.
        folder: The child's temporary folder.

    Attributes:
        parts: Name, bytes and SHA-256 of each; none if the file has another content by now.
    """

    name = "keep"

    def __init__(
        self,
        configuration: Configuration,
        setup: PhaseSetup,
        file: Path,
        content_hash: str,
        *,
        place: Path,
        folder: Path,
    ) -> None:
        super().__init__(configuration, setup, file, folder=folder)
        self._content_hash = content_hash
        self._place = place
        self.parts: list[dict[str, Any]] = []

    def order(self) -> Order:
        """Say which file to read; nothing is scored."""
        order = order_for(
            self._setup,
            self._configuration,
            self._file,
            folder=self._folder,
            tasks=(),
            complete=(self._content_hash,),
        )
        return {**order, "keep": str(self._folder / "parts")}

    def outcome(self, tx: Transaction, result: Result, now: datetime) -> None:
        """Put the parts in their place, before the child's folder is removed."""
        if result["content_hash"] == self._content_hash:
            shutil.rmtree(self._place, ignore_errors=True)
            self._place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self._folder / "parts").rename(self._place)
            self.parts = result["parts"]
