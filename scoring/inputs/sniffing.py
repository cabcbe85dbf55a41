"""Detect the kind of a file from its content."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from scoring.inputs.faults import SHOWN, Faults, Unreadable, shown
from scoring.inputs.formats import FORMATS, Format
from scoring.printable import name_some

ARCHIVE, ARRAYS, TABLE, OTHER = "file.archive", "file.arrays", "file.table", "file.kind"
SIGNATURES: tuple[tuple[str, str, int, tuple[bytes, ...]], ...] = (
    (ARCHIVE, "gzip", 0, (b"\x1f\x8b",)),
    (ARCHIVE, "zip", 0, (b"PK\3\4", b"PK\5\6")),
    (ARCHIVE, "bzip2", 0, (b"BZh",)),
    (ARCHIVE, "xz", 0, (b"\xfd7zXZ\0",)),
    (ARCHIVE, "lzma", 0, (b"\x5d\0\0",)),
    (ARCHIVE, "7-Zip", 0, (b"7z\xbc\xaf\x27\x1c",)),
    (ARCHIVE, "RAR", 0, (b"Rar!",)),
    (ARCHIVE, "Zstandard", 0, (b"\x28\xb5\x2f\xfd",)),
    (ARCHIVE, "LZ4", 0, (b"\x04\x22\x4d\x18",)),
    (ARCHIVE, "Snappy", 0, (b"\xff\x06\0\0sNaPpY",)),
    (ARCHIVE, "a tar archive", 257, (b"ustar",)),
    (TABLE, "encrypted Parquet", 0, (b"PARE",)),
    (ARCHIVE, "Parquet", 0, (b"PAR1",)),
    (TABLE, "Arrow or Feather", 0, (b"ARROW1", b"FEA1", b"\xff\xff\xff\xff")),
    (TABLE, "Avro", 0, (b"Obj\1",)),
    (TABLE, "an SQLite database", 0, (b"SQLite format 3",)),
    (TABLE, "an old Office document", 0, (b"\xd0\xcf\x11\xe0",)),
    (TABLE, "an R object", 0, (b"RDA2\n", b"RDA3\n", b"A\n2\n", b"A\n3\n", b"RDX2\n", b"RDX3\n", b"X\n\0\0")),
    (TABLE, "a Stata file", 0, (b"<stata_dta>",)),
    (TABLE, "an SPSS file", 0, (b"$FL2", b"$FL3")),
    (TABLE, "a SAS file", 0, (b"\0" * 12 + b"\xc2\xea\x81\x60", b"HEADER RECORD*******")),
    (TABLE, "FlatGeobuf", 0, (b"fgb\3",)),
    (ARRAYS, "a single NumPy array without ids", 0, (b"\x93NUMPY",)),
    (ARRAYS, "HDF5 or netCDF 4", 0, (b"\x89HDF",)),
    (ARRAYS, "netCDF", 0, (b"CDF\1", b"CDF\2", b"CDF\5")),
    (ARRAYS, "a TIFF or GeoTIFF", 0, (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    (
        ARRAYS,
        "a pickle",
        0,
        (
            b"\x80\2",
            b"\x80\3",
            b"\x80\4",
            b"\x80\5",
            b"(dp0\n",
            b"(lp0\n",
            b"ccopy_reg\n",
            b"cnumpy",
            b"}q\0",
            b"]q\0",
        ),
    ),
    (ARRAYS, "a MATLAB file", 0, (b"MATLAB 5.0", b"MATLAB 7.3")),
    (ARRAYS, "GRIB", 0, (b"GRIB",)),
    (ARRAYS, "FITS", 0, (b"SIMPLE  =",)),
    (ARRAYS, "LMDB", 16, (b"\xde\xc0\xef\xbe",)),
    (ARRAYS, "a FAISS index", 0, (b"IxF", b"IwF", b"IHN")),
    (ARRAYS, "GGUF", 0, (b"GGUF",)),
    (OTHER, "PDF", 0, (b"%PDF",)),
    (OTHER, "a picture", 0, (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"\0\0\0\x0cjP")),
    (OTHER, "a program", 0, (b"\x7fELF",)),
)
"""Fault, kind, and the bytes that a file of this kind has at a position."""
SHAPES = (
    (TABLE, "ORC", re.compile(rb"ORC[^ -~\t\r]")),
    (TABLE, "a DuckDB database", re.compile(rb".{8}DUCK.{2}\0{6}", re.DOTALL)),
    (TABLE, "a Stata file", re.compile(rb"[\x69-\x73][\x01\x02]\x01\0")),
    (ARRAYS, "safetensors", re.compile(rb".{4}\0{4}\{\s*\"", re.DOTALL)),
    (ARRAYS, "TFRecord", re.compile(rb".{3}\0{5}.{4}\n", re.DOTALL)),
)
"""Fault and kind of files whose first bytes are not always the same."""
MEMBERS = {
    re.compile(r"(.*/)?(\.zarray|\.zgroup|\.zattrs|\.zmetadata|zarr\.json)"): (ARRAYS, "a Zarr archive"),
    re.compile(r"xl/.*"): (TABLE, "an Excel workbook"),
    re.compile(r"(word|ppt)/.*"): (TABLE, "an Office document"),
    re.compile(r"META-INF/manifest\.xml"): (TABLE, "an OpenDocument file"),
    re.compile(r"[^/]*/data\.pkl"): (ARRAYS, "a PyTorch file"),
}
"""Names inside a zip or folder that reveal its kind, and the fault that this is."""
FOLDERS = {
    "_delta_log": "a Delta table",
    "_versions": "a Lance dataset",
    "dataset_info.json": "a dataset of Hugging Face",
}
"""Names inside a folder that reveal its kind."""
PART = re.compile(r"part[-_.]?\d.*|_SUCCESS|.+\.(csv|parquet|pq|npz)(\.gz)?|.+=.+", re.IGNORECASE)
POINTERS = {
    re.compile(rb"version https://git-lfs"): "Git LFS wrote it",
    re.compile(rb"(outs|deps|md5|wdir|frozen):.*\n(.*\n)*.*(md5|etag|path): "): "DVC wrote it",
    re.compile(rb"[./]*(\.git)?/annex/objects/"): "git-annex wrote it",
}
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")
JSON = re.compile(rb"\s*[\[{]\s*[\"\[{\]}\d-]")
MARKUP = re.compile(rb"\s*<[!?A-Za-z]")
HTML = re.compile(rb"<(!doctype html|html|head|body|title|table|div|p|script|center|h\d)\b", re.IGNORECASE)
TEXT = bytes([*b"\0\t\n\f\r", *range(32, 127), *range(128, 256)])  # NUL has a message of its own
MOST_CONTROLS = 0.02  # share of control characters in a text; random bytes have 0.1


def sniff(file: BinaryIO, faults: Faults) -> Format:
    """Return the format of a file, and leave the file at its beginning.

    Raises:
        Unreadable: If it is empty.
    """
    head = file.read(16)
    file.seek(0)
    if not head:
        raise faults.fatal("file.empty")
    fitting = [each for each in FORMATS if head.startswith(each.magic)]
    return next(
        each for each in reversed(fitting) if not each.member or first_member(file).endswith(each.member)
    )


def first_member(file: BinaryIO) -> str:
    """Return the name in the first local header of a zip, and leave the file at its beginning."""
    file.seek(0)
    head = file.read(30 + 256)
    file.seek(0)
    length = int.from_bytes(head[26:28], "little")
    return head[30 : 30 + length].decode("utf-8", "replace")


def refuse_members(names: Iterable[str], faults: Faults) -> None:
    """Refuse a zip or folder of another kind, judged by the names inside.

    Raises:
        Unreadable: If it is one.
    """
    for name in names:
        for pattern, (code, kind) in MEMBERS.items():
            if pattern.fullmatch(name):
                raise faults.fatal(code, f"it is {kind}")


def parquet_parts(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the parts of a table that is a folder of files ``*.parquet`` or ``*.pq``, and the names of other files in it.

    There are no parts if it is no folder, or of a kind whose files are not all valid. Hidden files and those of Spark do not count.
    """
    entries = [] if not folder.is_dir() else sorted(folder.iterdir())
    if any(entry.name in FOLDERS for entry in entries):
        return [], []
    entries = [entry for entry in entries if entry.name[0] not in "._"]
    parts = [entry for entry in entries if entry.suffix.lower() in {".parquet", ".pq"} and entry.is_file()]
    return parts, [entry.name for entry in entries if entry not in set(parts)]


def refuse_folder(folder: Path, faults: Faults) -> Unreadable:
    """Return the refusal of a folder, judged by the names inside."""
    names = sorted(entry.name for entry in folder.iterdir())
    refuse_members(names, faults)
    if (kind := next((FOLDERS[name] for name in names if name in FOLDERS), None)) is not None:
        return faults.fatal(TABLE, f"it is {kind}")
    if any(PART.match(name) for name in names):
        return faults.fatal("file.parts", f"it holds {name_some(list(map(shown, names)), SHOWN)}")
    return faults.fatal("file.kind", "it is a folder")


def _kind_of_bytes(head: bytes) -> tuple[str, str] | None:
    """Return the fault and the kind of a file that is not a text, judged by its first bytes."""
    for code, kind, position, signatures in SIGNATURES:
        if head[position:].startswith(signatures):
            return code, kind
    return next(((code, kind) for code, kind, shape in SHAPES if shape.match(head)), None)


def _is_wide(head: bytes) -> bool:
    """Return whether bytes are text in UTF-16 or UTF-32, not some other data with many zeros."""
    encodings = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
    texts = (head[: len(head) // 4 * 4].decode(encoding, "replace") for encoding in encodings)
    return any(all(sign.isprintable() or sign in "\t\r\n" for sign in text) for text in texts)


def sniff_text(head: bytes, faults: Faults, *, nested: bool) -> None:
    """Refuse a text that is certainly not a table.

    Args:
        head: The first bytes after decompression.
        faults: Receives the fault.
        nested: Whether the bytes come from an archive.

    Raises:
        Unreadable: If it is not text, or text of another kind, such as HTML.
    """
    if not head:
        raise faults.fatal("file.empty")
    if head.startswith(WIDE_MARKS):
        raise faults.fatal("file.utf16")
    if (found := _kind_of_bytes(head)) is not None:
        code, kind = found
        is_nested = nested and code == ARCHIVE
        raise faults.fatal(
            "archive.nested" if is_nested else code, f"{'inside' if nested else 'it'} is {kind}"
        )
    text = head.removeprefix(b"\xef\xbb\xbf")
    for pattern, program in POINTERS.items():
        if pattern.match(text):
            raise faults.fatal("file.pointer", program)
    has_zeros = text.count(b"\0") * 4 > len(text)  # in UTF-16, every second byte of Western text is zero
    if has_zeros and _is_wide(text):
        raise faults.fatal("file.utf16")
    if has_zeros or len(text.translate(None, TEXT)) > MOST_CONTROLS * len(text):
        raise faults.fatal("file.kind", "it is binary data, and may be damaged")
    if MARKUP.match(text):
        raise faults.fatal("file.html") if HTML.search(text) else faults.fatal("file.kind", "it is XML")
    if JSON.match(text):
        raise faults.fatal("file.json")
