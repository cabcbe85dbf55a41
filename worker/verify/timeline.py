"""The repository over time: signed commits and the tip that visitors see, files that only grow, the log, and an older clone.

Each push of the worker publishes everything that it has. So what a commit adds is younger than everything in the commits before it, and
anything else was backdated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from leaderboard.rendering import HISTORY
from scoring.documents import canonical
from scoring.printable import name_some
from worker.challenge.signing import openssh
from worker.fairness import commitments, receipts
from worker.fairness.decisions import minute
from worker.fairness.disclosure import reveal_path
from worker.fairness.published import signed_in
from worker.participant.challenge import MISSED
from worker.verify.commits import GROWING, Step, grew, is_served, times_added
from worker.verify.public import PublicRepository
from worker.verify.verdict import (
    CheckEnded,
    Status,
    Verdict,
    believed,
    consistent,
    contradicted,
    judged,
    not_revealed,
    require,
)

CLOCK_SLACK = timedelta(minutes=5)  # a clock may be set back between a commitment and the first score
Added = tuple[Step, str, tuple[datetime, ...]]
"""A commit of the challenge, a file, and the times in what it added there: one for each line or commitment, or the reveal's."""
A_DAY = timedelta(days=1)  # by which the clock of whoever verifies may be behind
SLACK = timedelta(minutes=15)  # a board carries the time at which its making began, which may take this long


def signature(repository: PublicRepository) -> Verdict:
    """Check that the files are in a commit of the challenge."""
    commit, key = repository.commit, repository.history.key
    if commit is None:
        return believed(
            "this is a plain folder, so it cannot be checked whether the challenge has signed its files"
        )
    if key is None:
        raise CheckEnded(
            "no commit is signed with a key that commitment.json names. Nothing shows that the challenge published this; the newest one"
            f" is {commit}",
            Status.CHANGED,
        )
    return consistent(
        f"commit {commit.commit[:10]}, and so every file and commit below it, is signed with the challenge's key: {openssh(key)}"
    )


def tip(repository: PublicRepository) -> Iterator[Verdict]:
    """Say who else has changed what visitors see, and which files are not the challenge's."""
    seen = repository.history
    foreign = {*repository.foreign_paths, *(path for path in seen.changed if not is_served(path))}
    if seen.changed_by:
        changed, steps = list(filter(is_served, seen.changed)), newest_first(seen.changed_by)
        sentence = (
            f"{name_some(changed)}: changed by {name_some(steps)}. The challenge has not signed that, so what visitors see is not what"
            " it published. The newest commit that it has signed is checked instead"
        )
        yield Verdict(status=Status.CHANGED, sentence=sentence)
    changed_by = set(seen.changed_by)
    others = [step for step in seen.foreign if seen.key and step not in changed_by]
    for is_signed, what in (
        (False, "are not the challenge's, and prove nothing"),
        (True, "are signed with the challenge's key, and have no commitment of this key"),
    ):
        if named := [step for step in others if (step.key == seen.key) is is_signed]:
            yield believed(f"these commits {what}: {name_some(newest_first(named))}")
    if served := sorted(filter(is_served, foreign)):
        yield believed(
            f"these files are not the worker's, but may change what visitors see: {name_some(served)}"
        )
    if unserved := sorted(foreign.difference(served)):
        yield believed(f"these files are not the worker's, and are not checked: {name_some(unserved)}")


def newest_first(steps: Sequence[Step]) -> list[str]:
    """Return how a report names commits."""
    return [str(step) for step in reversed(steps)]


def history(repository: PublicRepository) -> Iterator[Verdict]:
    """Check that the files that may only grow have only grown."""
    seen = repository.history
    if repository.commit is None:
        yield believed(
            "this is a plain folder without history, so it is taken on trust that its files were not changed later. Check a clone"
            " of the repository instead"
        )
        return
    if not seen.whole:
        yield not_revealed("this clone is shallow: commits from before it begins cannot be checked")
    lost = {
        path: f"{step} lacks something that a commit before it has" for path, step in seen.shortened.items()
    }
    # In a repository without a signed commit, nothing shows who has removed something.
    gone = {
        path: (step, "something that the challenge's key has signed")
        for (path, _), step in seen.signed
        if seen.key and step.commit in seen.commits
    }
    gone |= {path: (step, "something") for path, step in growth(repository)[1].items()}
    lost |= {
        path: f"{what} that {step} published is no longer in it, or was changed"
        for path, (step, what) in gone.items()
    }
    for path, what in lost.items():
        yield contradicted(f"{path} was changed after it was published: {what}")
    if not lost and seen.whole:
        yield consistent(f"nothing in {', '.join(GROWING)} was removed or changed after it was published")
    for name in repository.phases:
        if name not in repository.revealed:
            yield from _withdrawn(repository, name)


def _withdrawn(repository: PublicRepository, name: str) -> Iterator[Verdict]:
    """Look for an earlier reveal of a phase that is not revealed now; a state from an older backup does not know it."""
    for step, _ in repository.versions(reveal_path(name)):
        if repository.is_restored_since(step):
            yield believed(
                f"{step} revealed phase {name}; the state was restored from a backup since, and the organizers have not revealed it again"
            )
        else:
            yield contradicted(f"{step} revealed phase {name}, and the reveal was withdrawn")
        return


def order(repository: PublicRepository) -> Verdict | None:
    """Check that no board was pushed before the first commitment; None if nothing that is signed shows it."""
    seen = repository.history
    if seen.key is None or not seen.whole:
        return None
    require(
        not any(step.key == seen.key and HISTORY in step.blobs for step in seen.foreign),
        "boards were pushed without a commitment of the same key",
    )
    return consistent("the first commitment was pushed before any board, or with the first one")


def log(repository: PublicRepository) -> Verdict:
    """Check that the log of receipts is unbroken, and that its times never go back."""
    lines = receipts.read_log(repository.files.get(receipts.PATH, b""))
    previous, last = receipts.GENESIS, datetime.min.replace(tzinfo=UTC)
    for number, line in enumerate(lines, start=1):
        require(
            line.sequence == number and line.previous == previous and line.is_chained,
            f"the public log is broken at line {number}: something was changed, dropped or reordered",
        )
        require(
            line.restored is None or line.restored.last == number - 1,
            f"line {number} of the public log reports lines as lost that are not those right before it",
        )
        require(
            number == 1 or line.made_at >= last - CLOCK_SLACK,
            f"line {number} of the public log is dated earlier than the line before it",
        )
        previous, last = line.head, line.made_at
    if not lines:
        return not_revealed("no receipts have been published yet")
    restored = "".join(
        f". According to line {line.sequence}, the state was restored from a backup: what was registered after that backup is lost"
        for line in lines
        if line.restored is not None
    )
    return (believed if restored else consistent)(
        f"the public log is unbroken (batches: {len(lines)}){restored}"
    )


def signatures(repository: PublicRepository) -> Verdict:
    """Check that commitments and batches are signed with the challenge's key, as anybody who looks for what it has signed finds them."""
    entries = [entry.model_dump(mode="json", exclude={"signature"}) for entry in repository.commitments]
    for path, what, listed in (
        (commitments.PATH, "commitment {}", entries),
        (receipts.PATH, "line {} of the public log", [line.head for line in repository.log]),
    ):
        signed = signed_in(path, repository.files.get(path, b""), repository.key)
        for number, body in enumerate(listed, 1):
            is_signed = (path, canonical(body).decode()) in signed
            require(is_signed, f"{what.format(number)} is not signed with the challenge's key")
    return consistent("commitments and log are signed with the challenge's key")


@lru_cache(maxsize=2)
def growth(repository: PublicRepository) -> tuple[list[Added], dict[str, Step]]:
    """Compare the versions of the files that may only grow in the challenge's commits.

    Returns:
        What commits added to these files, and the reveals that they added, in the order of commits; a restored backup publishes an earlier
        reveal again. And file to the last commit with a new version that the newest one does not continue.
    """
    added, dropped = list[Added](), dict[str, Step]()
    for path in map(reveal_path, repository.revealed):
        added += [(step, path, times_added(path, b"", text)) for step, text in repository.versions(path)]
    for path in GROWING:
        final, before = repository.files.get(path, b""), b""
        for step, text in repository.versions(path):
            if not grew(path, text, final):
                dropped[path] = step
            elif new := times_added(path, before, text):
                added.append((step, path, new))
                before = text
    places = {step.commit: place for place, step in enumerate(repository.own)}
    return sorted(filter(itemgetter(2), added), key=lambda addition: places[addition[0].commit]), dropped


def times(repository: PublicRepository, now: datetime) -> Verdict | None:
    """Check that nothing lies in the future, or was backdated against the order of commits, which is not known of a plain folder."""
    for path in GROWING:
        for number, moment in enumerate(times_added(path, b"", repository.files.get(path, b"")), 1):
            require(
                moment <= now + A_DAY,
                f"entry {number} of {path} is dated in the future of this machine's clock, {minute(now)}",
            )
    added, _ = growth(repository)
    if not added:
        return None
    _check_order(added)
    sentence = "what each commit added is newer than what was published before it"
    most = max((len(new) for _, path, new in added if path == receipts.PATH), default=0)
    if most > MISSED and repository.history.whole:
        return believed(
            f"{sentence}; but up to {most} lines of the public log came in one commit, and that they were made one after the other is"
            " taken on trust"
        )
    return consistent(sentence)


def _check_order(added: Iterable[Added]) -> None:
    """Check that nothing was published after something younger."""
    newest = datetime.min.replace(tzinfo=UTC) + SLACK
    for step, together in groupby(added, key=itemgetter(0)):
        reached = newest
        for _, path, new in together:
            oldest = min(new)
            require(
                oldest >= newest - SLACK,
                f"{step} added something to {path} that is dated"
                f" {oldest.isoformat()[:16]}, but {newest.isoformat()[:16]} had already been published: it was backdated",
            )
            reached = max(reached, *new)
        newest = reached


def older_verdicts(newer: PublicRepository, older: PublicRepository) -> Iterator[Verdict]:
    """Compare a repository with an older clone, or an older copy of its files.

    Anybody can write a folder or a commit, so only what the challenge's key has signed counts: commits, commitments and lines of the log.
    """
    return judged("older clone", _compared, newer, older)


def _compared(newer: PublicRepository, older: PublicRepository) -> Iterator[Verdict]:
    ours, seen = newer.commit, older.history
    if ours and older.commit and ours.commit in seen.commits - {older.commit.commit}:
        sentence = (
            f"the older clone goes on after {ours}, which is checked here. The two were named the wrong way"
            " round, or somebody has forced the branch back; who did is not known"
        )
        yield Verdict(status=Status.CHANGED, sentence=sentence)
        return
    is_signed_commit = seen.key is not None
    by_others = [part for part, _ in seen.signed]
    whole, unsigned = True, []
    for path in GROWING:
        earlier, later = older.files.get(path, b""), newer.files.get(path, b"")
        parts = signed_in(path, earlier, newer.key) | {part for part in by_others if part[0] == path}
        goes_on = grew(path, earlier, later)
        if not parts <= signed_in(path, later, newer.key) or (is_signed_commit and not goes_on):
            whole = False
            yield contradicted(
                f"history was rewritten: {path} lacks something that the challenge has signed, and the older clone has"
            )
        elif is_signed_commit or (parts and goes_on):
            yield consistent(f"{path} still has everything that the older clone has of it")
        elif earlier:
            unsigned.append(path)
    if unsigned:
        yield believed(
            f"the older clone has something in {', '.join(unsigned)} that the challenge has not signed, so it proves nothing"
        )
    yield _of_commits(newer, older, whole=whole)


def _of_commits(newer: PublicRepository, older: PublicRepository, *, whole: bool) -> Verdict:
    """Look for the older clone's commit; ``whole`` says whether every file that may only grow continues its content."""
    commit = older.commit
    if commit is None or newer.commit is None:
        return believed(
            "one of the two is a plain folder, so only their files can be compared, not their histories"
        )
    if older.history.key is None:
        return believed("no commit of the older clone is signed with this challenge's key")
    named = f"commit {commit.commit[:10]} of the older clone ({commit.at.isoformat()})"
    if commit.commit in newer.history.commits:
        return consistent(f"{named} and all commits before it are in this history")
    if not newer.history.whole:
        return not_revealed(f"this clone is shallow, so whether {named} is in its history cannot be checked")
    if whole:
        # Anyone who may push may force a push, after which the challenge publishes everything again.
        return believed(
            f"history was rewritten, or the challenge has moved: {named} is not in this history. Its commitments, log and boards are all"
            " still here. Who forced a push is not known; a worker that notices one records it in its register"
        )
    return contradicted(f"history was rewritten: {named} is not in this history")
