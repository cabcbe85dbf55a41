"""Reading a repository's objects gives their content, in whatever order they are read."""

from __future__ import annotations

import hashlib
from pathlib import Path

import git
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from worker.fairness.verify.own_commits import ABSENT, Blobs


@given(versions=st.lists(st.sampled_from([b"", b"a", b"a\nb", b"a\nb\nc", b"b", b"a\n"]), max_size=8))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_hashes_are_those_of_the_contents(tmp_path: Path, versions: list[bytes]) -> None:
    """This also holds if a version does not begin with the one before it, or was read already."""
    with git.Repo.init(tmp_path / "repository", bare=True) as repository:
        names = []
        for number, content in enumerate(versions):
            file = tmp_path / str(number)
            file.write_bytes(content)
            names.append(repository.git.hash_object("-w", str(file)))
        blobs = Blobs(repository)
        for name, content in zip(names, versions, strict=True):
            assert blobs.sha256(name) == hashlib.sha256(content).hexdigest()
            assert blobs.content(name) == content
        assert blobs.content(ABSENT) == b""
        assert blobs.sha256(ABSENT) == hashlib.sha256().hexdigest()
