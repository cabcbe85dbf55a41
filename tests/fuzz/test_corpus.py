"""Every small input that the fuzzer began with, or that once broke something, is run once more; no fuzzer is needed for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.targets import READING_TARGETS, TARGETS

CORPUS = Path(__file__).parent / "corpus"
READING = Path(__file__).parents[1] / "scoring" / "inputs" / "corpus"


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_the_corpus_keeps_every_law(name: str) -> None:
    """No input of the corpus breaks the law of its target; the readers get all broken tables besides."""
    inputs = sorted((CORPUS / name).iterdir())
    assert inputs
    if name in READING_TARGETS:
        inputs += sorted(READING.iterdir())
    for path in inputs:
        try:
            TARGETS[name](path.read_bytes())
        except Exception as problem:
            raise AssertionError(f"{path.name} breaks the law of {name}") from problem


def test_the_targets_notice_a_broken_law() -> None:
    """A text that no database column holds is noticed: the laws can fail."""
    from worker.evalai import Message

    bad = Message(submission_pk=2**70, phase_pk=None, challenge_pk=None, receipt_handle="r")
    from tests.fuzz.targets import check_storable

    with pytest.raises(AssertionError):
        check_storable(bad)
