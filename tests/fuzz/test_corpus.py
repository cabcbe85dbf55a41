"""Run every input that the fuzzer started with or that once broke something, without the fuzzer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.targets import READING_TARGETS, TARGETS, check_storable
from worker.evalai import Message

CORPUS = Path(__file__).parent / "corpus"
READING = Path(__file__).parents[1] / "scoring" / "inputs" / "corpus"


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_the_corpus_breaks_no_property(name: str) -> None:
    """No input of the corpus breaks its target's property; the readers also get all broken tables."""
    inputs = sorted((CORPUS / name).iterdir())
    assert inputs
    if name in READING_TARGETS:
        inputs += sorted(READING.iterdir())
    for path in inputs:
        TARGETS[name](path.read_bytes())


def test_a_target_raises_if_its_property_is_broken() -> None:
    """A text that no database column can store raises, so the properties can fail."""
    message = Message(submission_pk=2**70, phase_pk=None, challenge_pk=None, receipt_handle="r")
    with pytest.raises(AssertionError):
        check_storable(message)
