"""Read the same CSV twice, and make many files to do so: the fast and the careful reader must never differ."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from scoring.errors import ParticipantError
from scoring.inputs.archives import Readable
from scoring.inputs.faults import Faults, Unreadable
from scoring.inputs.matrix_builder import MatrixBuilder
from scoring.inputs.sniffing import sniff
from scoring.inputs.tables import open_text
from scoring.inputs.tabular import read_csv
from tests.scoring.inputs.reading_tables import CEILING


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """A source that gives a few bytes at a time, so that a small file has many blocks."""

    source: Readable
    most: int

    def read(self, size: int, /) -> bytes:
        """Return up to ``most`` bytes."""
        return self.source.read(min(size, self.most))


def check_readers(data: bytes, ids: Sequence[str], dim: int, *, piece: int = 1 << 20) -> None:
    """Check that with and without the fast reader, a CSV file, compressed or not, has the same bits, notes, faults and verdict."""
    fast, careful = (_outcome(data, ids, dim, piece=piece, fast=fast) for fast in (True, False))
    assert fast == careful, f"the readers differ: {fast} instead of {careful} for {data!r}"


def _outcome(data: bytes, ids: Sequence[str], dim: int, *, piece: int, fast: bool) -> tuple[object, ...]:
    faults = Faults()
    builder = MatrixBuilder(ids, dim, faults)
    file = io.BytesIO(data)
    try:
        kind = sniff(file, faults)
        if kind.reader:
            return ()
        text = open_text(file, kind, faults, max_expanded_bytes=CEILING)
        read_csv(Pieces(source=text, most=piece), builder, fast=fast)
        embeddings = builder.finish()
        verdict: tuple[object, ...] = (embeddings.content_hash, embeddings.notes)
    except Unreadable:
        verdict = ("unreadable", faults.verdict().message)
    except ParticipantError as error:
        verdict = (error.code, error.message, error.hint)
    return (
        *verdict,
        faults,
        builder.first_seen,
        builder.notes(),
        builder.unknown_examples,
        builder.matrix.tobytes(),
    )


def near_the_middle(number: float, offset: int) -> str:
    """Return a decimal next to the middle between a float32 and the next to zero, where rounding to float64 first matters."""
    nearer_to_zero = np.nextafter(np.float32(number), np.float32(0.0))
    middle = (Decimal(float(number)) + Decimal(float(nearer_to_zero))) / 2
    return f"{middle + Decimal(offset) * abs(middle) * Decimal('1e-18'):.60e}"


IDS = ("s0", "s1", "007", "7", "nan", "NA", "1e5", "-1", "x y", "ü", "日本", "a.b", "2024-01-01")
IDS_TO_QUOTE = ("a,b", 'a"b')
FORMS: tuple[Callable[[float], str], ...] = (
    lambda value: repr(float(np.float32(value))),
    repr,
    "{:.6f}".format,
    "{:.30f}".format,
    "{:+.3E}".format,
    " {:.4f}\t".format,
    lambda value: near_the_middle(value, int(value * 10) % 5 - 2),
    lambda value: str(int(value)),
)
NUMBERS = (
    *(
        "0",
        "-0.0",
        "+1",
        "1.",
        ".5",
        "-.5e+1",
        "0001",
        "1e0005",
        "16777217",
        "0e99999",
        "0." + "0" * 400 + "1e401",
    ),
    *(
        "1e-400",
        "4e-324",
        "2e-324",
        "1e-45",
        "7e-46",
        "7.006492321624085e-46",
        "1.1754943e-38",
        "3.4028235e38",
    ),
    *("1e-99999999999999999999", "0.1" + "0" * 800 + "1", "3.4028235677973362e38"),
)
CELLS = (
    *("", " ", "nan", "NaN", "nan(1)", "-nan", "inf", "-Infinity", "NULL", "None", "NA", "true", "#N/A", "x"),
    *("1e39", "1e400", "-1e400", "9" * 400, "3.4028235677973366e38", "1e99999999999999999999"),
    *(
        "1_000",
        "0x10",
        "0x1p3",
        "1f",
        "1d0",
        "1L",
        "1.5.2",
        "+-1",
        "--1",
        "1e",
        "1e+",
        ".",
        "-",
        "e5",
        "1e5.",
        "1e 5",
    ),
    *(
        "1 2",
        "- 1",
        "1%",
        "[1]",
        "'1'",
        "1;",
        "\N{MINUS SIGN}1",
        "\N{ARABIC-INDIC DIGIT ONE}",
        "１",
        "\v1",
        "1\f",
    ),
    *(
        "\N{NO-BREAK SPACE}1",
        "\ufeff1",
        "1\0",
        "1\r",
        '"1.0"',
        '""',
        '" 1"',
        ' "1"',
        '"1" ',
        '"1"2',
        '1"',
        '"1',
        '"1""2"',
    ),
    *('"1,2"', '"1\n2"', '"1\r\n2"', "1,2", "1\n2", "1\r2"),
)
BYTES = (
    *(
        b"\r",
        b"\n",
        b"\r\n",
        b"\n\n",
        b"\n \n",
        b'"',
        b'""',
        b"'",
        b",",
        b",,",
        b" ",
        b"\t",
        b"\0",
        b"\v",
        b"\f",
        b"\x1a",
    ),
    *(
        b"\xef\xbb\xbf",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xc0\x80",
        "\u2028".encode(),
        "\x85".encode(),
        b"\\",
        b"#",
    ),
    *(b"+", b"-", b".", b"e", b"_", b"0", b"9", b";", b"\\N"),
)
STARTS = (b"\xef\xbb\xbf", b"\0", b"\xff", b'"', b'""', b" ", b"\n", b"\r", b"a,1\rb,2\n\n")


@dataclass(frozen=True, kw_only=True)
class Generated:
    """A CSV file.

    Attributes:
        header: The names of the columns.
        lines: The other lines, without faults.
        data: The whole file.
        ids: The public ids.
        dim: Number of values per id.
        piece: Bytes that are read at a time.
    """

    header: list[str]
    lines: bytes
    data: bytes
    ids: tuple[str, ...]
    dim: int
    piece: int


def generate(number: int) -> Generated:
    """Make a file from its number: an odd one has one small fault, which may be harmless."""
    draw = random.Random(number)
    dim = draw.randint(1, 5)
    ids = (*draw.sample(IDS, draw.randint(2, 12)), *IDS_TO_QUOTE[: draw.choice([0] * 8 + [1, 2])])
    form, end = draw.choice(FORMS), draw.choice(["\n", "\n", "\r\n"])
    quotes = draw.choice(["needed", "needed", "needed", "ids", "ids", "all", "some"])
    extra = draw.choice([0, 0, 1, 2])
    header = draw.sample(["id", *map(str, range(dim)), *["note", ""][:extra]], 1 + dim + extra)
    if draw.random() < 0.5:
        header.remove("id")
        header.insert(0, "id")

    def cell(text: str, name: str) -> str:
        quoted = set(text) & set(',"') or quotes == "all" or (quotes == "ids" and name == "id")
        if quoted or (quotes == "some" and draw.random() < 0.1):
            return '"' + text.replace('"', '""') + '"'
        return text

    def row(identifier: str) -> str:
        texts = dict.fromkeys(header, draw.choice(["", "a note", "é", "n/a"]))
        texts |= {str(column): form(draw.gauss(0, 100)) for column in range(dim)} | {"id": identifier}
        if draw.random() < 0.1:
            texts[str(draw.randrange(dim))] = draw.choice(NUMBERS)
        return ",".join(cell(text, name) for name, text in texts.items())

    suffix = draw.choice(["", "", "", ".zarr"])
    names = [name + suffix for name in draw.sample(ids, len(ids))]
    names += [f"unknown{place}" for place in range(draw.choice([0, 0, 3]))]
    body = end.join(map(row, names)) + (end if draw.random() < 0.8 else "")
    mark = b"\xef\xbb\xbf" if draw.random() < 0.1 else b""
    data = mark + (",".join(header) + end + body).encode()
    return Generated(
        header=header,
        lines=(body if body.endswith("\n") else body + "\n").encode(),
        data=_with_fault(data, draw) if number % 2 else data,
        ids=ids,
        dim=dim,
        piece=draw.choice([1 << 20, 1 << 20, 16, 100, 400]),
    )


def _with_fault(data: bytes, draw: random.Random) -> bytes:
    """Change one cell, one line or a few bytes."""
    place = draw.randrange(len(data))
    kind = draw.choice(["cell", "cell", "cell", "bytes", "bytes", "start", "start", "line", "without"])
    if kind == "start":  # of a line, so often in an id
        place = draw.choice([place for place, byte in enumerate(data) if byte == ord("\n")]) + 1
        return data[:place] + draw.choice(STARTS) + data[place:]
    if kind == "bytes":
        return data[:place] + draw.choice(BYTES) + data[place + draw.choice([0, 1]) :]
    if kind == "without":
        return data[:place] + data[place + draw.choice([1, 1, 2, 10]) :]
    lines = data.split(b"\n")
    chosen = draw.randrange(len(lines))
    if kind == "line":
        line = lines[chosen]
        changes = (
            b"",
            b" \t",
            b"\r",
            line + b",",
            b"," + line,
            line + b"\r",
            line + b"\n" + line,
            b'"' + line + b'"',
        )
        lines[chosen] = draw.choice(changes)
    else:
        cells = lines[chosen].split(b",")
        cells[draw.randrange(len(cells))] = draw.choice(CELLS).encode()
        lines[chosen] = b",".join(cells)
    return b"\n".join(lines)
