"""Attestations: commitments, receipts and reveals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from worker.state import schema
from worker.state.table import Tables


class Attestations(Tables):
    """Methods for commitments, receipts and reveals."""

    def commitments(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return all commitments, oldest first, each as its public entry and the secret part that opens it."""
        table = schema.commitments
        rows = self._connection.execute(sa.select(table).order_by(table.c.sequence))
        return [(json.loads(row.public), json.loads(row.private)) for row in rows]

    def public_commitments(self) -> list[dict[str, Any]]:
        """Return the public entries of all commitments, oldest first."""
        table = schema.commitments
        rows = self._connection.execute(sa.select(table.c.public).order_by(table.c.sequence))
        return [json.loads(row.public) for row in rows]

    def add_commitment(self, sequence: int, public: str, private: str) -> None:
        """Append a commitment."""
        self._connection.execute(
            schema.commitments.insert().values(sequence=sequence, public=public, private=private)
        )

    def open_receipts(self) -> list[str]:
        """Return the commitments of receipts that no batch has published yet."""
        table = schema.receipts
        return list(
            self._connection.execute(
                sa.select(table.c.commitment).where(table.c.batch.is_(None)).order_by(table.c.id)
            ).scalars()
        )

    def receipts(self) -> list[dict[str, Any]]:
        """Return all receipts, oldest first."""
        rows = self._connection.execute(sa.select(schema.receipts).order_by(schema.receipts.c.id))
        return [{**row._mapping, "record": json.loads(row.record)} for row in rows]

    def batches(self) -> list[str]:
        """Return the lines of the public log."""
        table = schema.batches
        return list(self._connection.execute(sa.select(table.c.line).order_by(table.c.sequence)).scalars())

    def last_batch(self) -> tuple[int, str | None]:
        """Return the number and the text of the last line of the public log; 0 and None if it is empty."""
        table = schema.batches
        query = sa.select(table.c.sequence, table.c.line).order_by(table.c.sequence.desc()).limit(1)
        row = self._connection.execute(query).first()
        return (0, None) if row is None else (row.sequence, row.line)

    def fillers(self) -> dict[int, str]:
        """Return the keys of the filler entries in the lines of the public log."""
        table = schema.batches
        rows = self._connection.execute(sa.select(table).where(table.c.fillers.is_not(None)))
        return {row.sequence: row.fillers for row in rows}

    def add_batch(
        self, sequence: int, line: str, commitments: Sequence[str], *, fillers: str | None = None
    ) -> None:
        """Append a batch, and mark its commitments as published."""
        self._connection.execute(
            schema.batches.insert().values(sequence=sequence, line=line, fillers=fillers)
        )
        for table in (schema.receipts, schema.events):
            for commitment in commitments:
                self._connection.execute(
                    table.update().where(table.c.commitment == commitment).values(batch=sequence)
                )

    def reveals(self) -> dict[str, dict[str, str]]:
        """Return what was revealed: phase to path to text."""
        rows = self._connection.execute(sa.select(schema.reveals))
        return {row.phase: json.loads(row.files) for row in rows}

    def revealed_phases(self) -> frozenset[str]:
        """Return the phases that were revealed."""
        return frozenset(self._connection.execute(sa.select(schema.reveals.c.phase)).scalars())

    def add_reveal(self, phase: str, files: dict[str, str]) -> None:
        """Reveal a phase, or replace its reveal."""
        table = schema.reveals
        self._connection.execute(table.delete().where(table.c.phase == phase))
        self._connection.execute(table.insert().values(phase=phase, files=json.dumps(files)))
