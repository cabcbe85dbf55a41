"""Prepare a content for publication: a child process reads a stored file and writes it in the form that is hashed, in parts."""

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
    """Read a stored file and write its content in parts.

    Args:
        configuration: Limits.
        setup: The phase.
        file: The stored file.
        content_hash: Hash of the content that was scored; another content is not kept.
        place: Destination of the folder with the parts, which appears whole or not at all.
        folder: The child's temporary folder.

    Attributes:
        parts: Name, bytes and SHA-256 of each part; empty if the file has another content now.
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
        """Return which file to read; nothing is scored."""
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
        """Move the parts to their destination, before the child's folder is removed."""
        if result["content_hash"] == self._content_hash:
            shutil.rmtree(self._place, ignore_errors=True)
            self._place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self._folder / "parts").rename(self._place)
            self.parts = result["parts"]
