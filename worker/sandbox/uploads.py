"""Large uploads: the submission exists at once with a placeholder, and its file comes in parts under the same address."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from worker.sandbox import lifecycle
from worker.sandbox.state import Entrant, Submission, Upload, World

PLACEHOLDER = b"file_content"


def begin(
    world: World, entrant: Entrant, file_name: str, description: Mapping[str, Any], *, count: int
) -> tuple[str, Submission]:
    """Store a new submission that waits for its parts; no message is sent.

    Returns:
        The name of the upload, and the submission.

    Raises:
        Refusal: 406 if the quota is used up.
    """
    submission = lifecycle.add(world, entrant, PLACEHOLDER, file_name, description)
    name = hashlib.sha256(f"{world.settings.seed}/upload/{submission['id']}".encode()).hexdigest()
    world.uploads[name] = Upload(submission=submission["id"], path=submission["input_file"], count=count)
    return name, submission


def address(world: World, name: str, number: int) -> str:
    """Return the address for a part, which can be used without a token."""
    query = urlencode({"uploadId": name, "partNumber": number})
    return f"{world.media_url}/media/{world.uploads[name].path}?{query}"


def put(world: World, path: str, name: str, number: str, content: bytes) -> str | None:
    """Store a part and return its tag; None if the part is not expected."""
    upload = world.uploads.get(name)
    expected = {} if upload is None else {str(part): part for part in range(1, upload.count + 1)}
    if upload is None or upload.path != path or number not in expected:
        return None
    upload.parts[expected[number]] = content
    return tag(content)


def tag(content: bytes) -> str:
    """Return the storage's tag for the content of a part."""
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def finish(world: World, name: str, listed: list[tuple[int, str]]) -> bool:
    """Replace the placeholder with the joined parts; return whether storage has all of them as they are listed."""
    upload = world.uploads.get(name)
    if upload is None or not listed:
        return False
    if any(
        number not in upload.parts or tag(upload.parts[number]) != listed_tag for number, listed_tag in listed
    ):
        return False
    world.media[upload.path] = b"".join(upload.parts[number] for number, _ in sorted(listed))
    del world.uploads[name]
    world.effect("uploaded", upload.submission)
    return True


def of(world: World, pk: int) -> str:
    """Return the name of a submission's upload.

    Raises:
        LookupError: If it has none, or the upload is finished.
    """
    for name, upload in world.uploads.items():
        if upload.submission == pk:
            return name
    raise LookupError(f"The sandbox knows no upload of submission {pk}.")
