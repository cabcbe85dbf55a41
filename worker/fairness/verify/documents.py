"""The document of a reveal, whose long lists are read one element at a time.

A reveal contains every board that was ever published. Parsed all together they would take twenty times the memory of the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from worker.fairness import parts
from worker.fairness.commitments import reveal_path

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")


class RevealDocument:
    """The content of a phase's ``reveal.json`` and its long lists, which are in separate parts or, in earlier versions, in that file.

    Args:
        files: Path to content.
        phase: Codename.

    Raises:
        LookupError, ValueError, TypeError, AttributeError, RecursionError: If it has another form, or a part differs from its description.
    """

    def __init__(self, files: Mapping[str, bytes], phase: str) -> None:
        path = reveal_path(phase)
        folder = path.rpartition("/")[0]
        self._files = files
        self._whole = LargeDocument(files[path], lists=parts.LISTS)
        self._parts = {
            name: [parts.path_of(files, folder, part) for part in listed]
            for name, listed in self.rest.get("parts", {}).items()
        }
        if any(name in self._whole for name in self._parts):
            raise ValueError("a list is in the document and in parts")

    @property
    def rest(self) -> Mapping[str, Any]:
        """Everything besides the long lists."""
        return self._whole.rest

    @property
    def paths(self) -> list[str]:
        """Paths of its parts."""
        return [path for listed in self._parts.values() for path in listed]

    def __contains__(self, name: str) -> bool:
        """Return whether there is a long list with this name."""
        return name in self._parts or name in self._whole

    def each(self, name: str) -> Iterator[str]:
        """Yield the text of each element of a long list.

        Raises:
            KeyError: If there is no such list.
        """
        if name not in self._parts:
            yield from self._whole.each(name)
            return
        for path in self._parts[name]:
            yield from parts.lines_of(self._files[path])


class LargeDocument:
    """A JSON object; the elements of some of its lists are parsed only when they are needed.

    Args:
        content: The document.
        lists: Keys of the long lists.

    Raises:
        ValueError: If it is not a JSON object, or has a key twice.
        RecursionError: If it is nested too deeply.
    """

    def __init__(self, content: bytes, *, lists: tuple[str, ...]) -> None:
        self._content = content
        self._spans: dict[str, list[tuple[int, int]]] = {}
        self.rest: dict[str, Any] = {}
        text = content.decode("latin-1")  # one character per byte; the structure of JSON is ASCII
        place = _after(text, 0, "{")
        while not text.startswith("}", place):
            name, place = _DECODER.raw_decode(text, place)
            if not isinstance(name, str) or name in self.rest or name in self._spans:
                raise ValueError("a key of the document is not text or occurs twice")
            start = _after(text, place, ":")
            if name in lists and text.startswith("[", start):
                *self._spans[name], (_, end) = _elements(text, start)
                place = _after(text, end, "]")
            else:
                place = _end(text, start)
                self.rest[name] = json.loads(content[start:place])
                place = _after(text, place)
            place = _next(text, place, "}")
        if _after(text, place, "}") != len(text):
            raise ValueError("something follows the document")

    def __contains__(self, name: str) -> bool:
        """Return whether the document has a long list with this name."""
        return name in self._spans

    def each(self, name: str) -> Iterator[str]:
        """Yield the text of each element of a long list.

        Raises:
            KeyError: If the document has no such list.
        """
        for start, end in self._spans[name]:
            yield self._content[start:end].decode()


def _after(text: str, place: int, sign: str = "") -> int:
    """Return the position after a character and the white space around it."""
    place = _end_of_space(text, place)
    if not text.startswith(sign, place):
        raise ValueError(f"no {sign} where one is needed")
    return _end_of_space(text, place + len(sign))


def _next(text: str, place: int, end: str) -> int:
    """Return the position of the next element, or of the end of the list."""
    if text.startswith(end, place):
        return place
    place = _after(text, place, ",")
    if text.startswith(end, place):
        raise ValueError("nothing follows a comma")
    return place


def _end(text: str, start: int) -> int:
    """Return the position after a value; the value itself is not kept."""
    return _DECODER.raw_decode(text, start)[1]


def _end_of_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _elements(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each element of a list; the last pair is the position of the list's end, twice."""
    place = _after(text, start, "[")
    while not text.startswith("]", place):
        end = _end(text, place)
        yield place, end
        place = _next(text, _after(text, end), "]")
    yield place, place
