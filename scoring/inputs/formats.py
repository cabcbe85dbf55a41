"""The formats that a file of embeddings may have: how people call them, how they begin, and what reads them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format, or CSV that is compressed.

    Attributes:
        name: As messages call it.
        details: What people should know about it.
        suffix: The usual one, which also names example, fuzz target and bomb in the tests; the name of a file decides nothing.
        magic: The first bytes, one of these.
        member: How the name of the first file in it ends, if it is a zip.
        reader: Module and function that read it into a builder, imported when it is needed; empty for text.
    """

    name: str = "CSV"
    details: str = ""
    suffix: str
    magic: tuple[bytes, ...] = (b"",)
    member: str = ""
    reader: str = ""


ZIPS = (b"PK\3\4", b"PK\5\6", b"PK\7\x08")
CSV = Format(details=" (plain, gzip or zip)", suffix=".csv")
GZIP = Format(suffix=".gz", magic=(b"\x1f\x8b",))
ZIP = Format(suffix=".zip", magic=ZIPS)
PARQUET = Format(
    name="Parquet",
    suffix=".parquet",
    magic=(b"PAR1",),
    reader="scoring.inputs.parquet:read_parquet",
)
NPZ = Format(
    name="NPZ",
    details=" with the arrays ids and embeddings",
    suffix=".npz",
    magic=ZIPS,
    member=".npy",  # numpy.savez writes its arrays one after the other; other entries are checked later
    reader="scoring.inputs.npz:read_npz",
)
FORMATS = (CSV, GZIP, ZIP, PARQUET, NPZ)
"""All, the most special last."""
SUFFIXES = tuple(each.suffix for each in FORMATS)


def listed(word: str = "or", *, text: bool = True, details: bool = False) -> str:
    """Return the names of the formats for people, with or without that of text: "CSV, Parquet or NPZ"."""
    shown = [each for each in FORMATS if each.reader or (text and each is CSV)]
    *names, last = [each.name + each.details * details for each in shown]
    return f"{', '.join(names)} {word} {last}"
