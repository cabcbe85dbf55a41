"""Read a repository with git's plumbing commands, whatever the user has configured and whatever others have committed.

GitPython runs the processes; what they print is read in :mod:`leaderboard.git.objects`. Nothing that decides what is read comes from the
user: no configuration, attributes, hooks, templates, replaced objects, or variables like ``GIT_DIR``. How a server is reached does: without
the user's proxy, certificates, credentials, ssh command and ``url.*.insteadOf``, many repositories could not be read at all.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from subprocess import PIPE, TimeoutExpired
from tempfile import TemporaryDirectory
from typing import Any

from leaderboard.git import objects
from leaderboard.git.objects import Blob, Commit
from leaderboard.git.process import FETCH, QUIET, SAFE
from leaderboard.git.remote import unreadable, without_credentials
from scoring.documents import expanded
from scoring.errors import OrganizerError

_SETTINGS = {
    **QUIET,
    "safe.directory": "*",  # the user has named the folder
    "safe.bareRepository": "all",
    "core.attributesFile": os.devnull,
    "core.bigFileThreshold": "8m",  # git keeps smaller files in memory as a whole
    "core.deltaBaseCacheLimit": "32m",
    "core.packedGitWindowSize": "16m",
    "core.packedGitLimit": "64m",
}
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
# How a server is reached: all variables and settings of the user that count.
_VARIABLE = re.compile(r"GIT_(ASKPASS|EXEC_PATH|HTTP_.*|PROXY_.*|SSH.*|SSL_.*)")
_SETTING = re.compile(r"(credential|http|ssh)\..*|url\..*\.insteadof|core\.(askpass|gitproxy|sshcommand)")
SHALLOW_S = 120.0  # for one command; a whole history may take any time
# A local repository may hide the parents of a commit from the process that sends its history.
_WHOLE = (f"--upload-pack=env GIT_GRAFT_FILE={os.devnull} git-upload-pack",)
_TIP, _CONTENTS = b"refs/neuco/tip", b"refs/neuco/files"
_SHOWN = re.compile(rb"^ref: ([^\t\n]+)\tHEAD$", re.MULTILINE)
_REFERENCE = re.compile(rb"^([0-9a-f]{40,64})\t([^\n]+)$", re.MULTILINE)
_BRANCH = re.compile(rb"refs/heads/(?!files$).+")
_WITH_CONTENTS = re.compile(rb"refs/(remotes/[^/]+|heads)/files")
Settings = Sequence[tuple[str, str]]


def start_git(
    *arguments: str, folder: Path, variables: Mapping[str, str], without: Iterable[str] = ()
) -> Any:
    """Start git, and return the process, whose input and output are bytes.

    Args:
        arguments: A command and its arguments.
        folder: Where it runs.
        variables: Are added to this process's environment.
        without: Variables that it does not get.

    Raises:
        OrganizerError: If git is missing, or cannot read the settings of the user.
    """
    try:
        from git.cmd import Git  # which runs git, also when it is imported
    except ImportError as error:
        if shutil.which("git") is not None:
            raise unreadable(
                "the user's settings", str(error).strip("'\n").replace("stderr: '", "\n")
            ) from error
        raise OrganizerError(
            "git is not installed on this machine.", hint="Install git 2.32 or newer.", code="git.missing"
        ) from error
    # GitPython can only add to the environment. Windows has no program env.
    less = [word for name in without for word in ("-u", name)]
    words = [*(["env", *less] if less else []), "git", *arguments]
    return Git(folder).execute(words, istream=PIPE, as_process=True, env=variables)


class Repository:
    """A repository that is only read.

    Args:
        folder: Its folder, or one inside its work tree.
        name: What messages call it; by default its folder.
        settings: Settings in addition to those with which every repository is read.
        variables: Variables in addition to those.
    """

    def __init__(self, folder: Path, *, name: str = "", settings: Settings = (), **variables: str) -> None:
        self.folder = folder
        self.name = name or str(folder)
        pairs = list(enumerate((*_SETTINGS.items(), *settings)))
        self._variables = {
            **_ENVIRONMENT,
            **variables,
            "GIT_CONFIG_COUNT": str(len(pairs)),
            **{f"GIT_CONFIG_KEY_{number}": key for number, (key, _) in pairs},
            **{f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in pairs},
        }

    def _start(self, *arguments: str) -> Any:
        inherited = {name for name in os.environ if name.startswith("GIT_") and not _VARIABLE.fullmatch(name)}
        without = inherited - self._variables.keys()
        return start_git(*arguments, folder=self.folder, variables=self._variables, without=without)

    def run(self, *arguments: str, stdin: bytes = b"", timeout_s: float | None = None) -> bytes:
        """Return what a command of git prints.

        Raises:
            OrganizerError: With git's own reason, if it fails.
        """
        process = self._start(*arguments)
        try:
            output, message = process.communicate(stdin, timeout_s)
        except TimeoutExpired:
            raise unreadable(self.name, f"git {arguments[0]} took longer than {timeout_s:g} s") from None
        if process.returncode:
            raise unreadable(self.name, message.decode("utf-8", "replace"))
        return bytes(output)

    def close(self) -> None:
        """End the process that reads objects."""
        self.__dict__.pop("_contents", None)  # GitPython ends a process that nothing refers to

    @cached_property
    def _contents(self) -> Any:
        return self._start("cat-file", "--batch")

    def content(self, name: str) -> bytes:
        """Return an object."""
        process = self._contents
        with suppress(BrokenPipeError):  # git has ended, and said why
            process.stdin.write(f"{name}\n".encode())
            process.stdin.flush()
        content = objects.read_object(process.stdout, name)
        if content is None:
            with suppress(BrokenPipeError):
                process.stdin.close()
            message = process.stderr.read().decode("utf-8", "replace")
            self.close()
            raise unreadable(self.name, message or f"object {name} is missing")
        return content

    def blobs(self, places: Iterable[tuple[str, str]]) -> list[Blob | None]:
        """Return the objects at paths in commits; None where there is no file."""
        queries = b"".join(
            b"%b:%b\n" % (commit.encode(), objects.write_path(path)) for commit, path in places
        )
        found = self.run("cat-file", "--batch-check=%(objecttype) %(objectname) %(objectsize)", stdin=queries)
        answers = (answer.decode("ascii", "replace").split(" ") for answer in found.splitlines())
        return [
            Blob(name=answer[1], size=int(answer[2])) if answer[0] == "blob" else None for answer in answers
        ]

    def file(self, commit: str, path: str) -> bytes | None:
        """Return a file; None if there is none."""
        (blob,) = self.blobs([(commit, path)])
        return self.content(blob.name) if blob else None

    def files(self, commit: str, *places: str) -> dict[str, Blob]:
        """Return path and content of all regular files in a commit, or of those at or below some places."""
        return objects.read_files(self.run("ls-tree", "-r", "-z", "-l", "--full-tree", commit, "--", *places))

    def paths(self, commit: str) -> tuple[str, ...]:
        """Return the paths of everything in a commit, also of links and submodules."""
        return self._listed("ls-tree", "-z", "--name-only", "--full-tree", commit)

    def _listed(self, command: str, *arguments: str) -> tuple[str, ...]:
        """Return the paths of all files; only the names at the top if folders are nested more deeply than git can read."""
        try:
            return objects.read_paths(self.run(command, "-r", *arguments))
        except OrganizerError:
            return objects.read_paths(self.run(command, *arguments))

    def commits(self, tip: str) -> list[str]:
        """Return the names of all commits up to a tip, oldest first."""
        return self.run("rev-list", "--reverse", "--topo-order", tip).decode().split()

    def commit(self, name: str) -> Commit:
        """Return a commit."""
        return objects.read_commit(name, self.content(name))

    @property
    def is_shallow(self) -> bool:
        """Whether the beginning of the history is missing."""
        return self.run("rev-parse", "--is-shallow-repository") == b"true\n"

    def changed(self, before: str, after: str) -> tuple[str, ...]:
        """Return the paths that differ between two commits."""
        return self._listed("diff-tree", "-z", "--no-renames", "--name-only", before, after)

    def commits_changing(self, paths: Iterable[str], before: str, after: str) -> frozenset[str]:
        """Return the names of the commits after one, up to another, that changed some of these paths."""
        listed = "".join(f"{line}\n" for line in (after, f"^{before}", "--", *paths))
        return frozenset(self.run("rev-list", "--stdin", stdin=objects.write_path(listed)).decode().split())


@dataclass(frozen=True, kw_only=True)
class Clone:
    """A fetched repository.

    Attributes:
        repository: Reads it.
        branch: The branch that visitors see; "HEAD" if it is none.
        tip: The newest commit of that branch.
        pages: The branch that a server may show instead, as ``branch gh-pages``; empty if there is none.
    """

    repository: Repository
    branch: str
    tip: str
    pages: tuple[str, ...]


def plain_folder(place: str) -> Path | None:
    """Return the folder at an address; None if it is a repository."""
    folder = expanded(place)
    # Who may push can add all files of a bare repository, which itself has no list of commitments.
    is_bare = (folder / "HEAD").is_file() and not (folder / "commitment.json").exists()
    is_repository = (folder / ".git").exists() or is_bare
    return folder if folder.is_dir() and not is_repository else None


@contextmanager
def cloned(place: str, *, shallow: bool = False) -> Iterator[Clone]:
    """Fetch the branch that visitors of a repository see, and the branch `files`.

    Args:
        place: Any git URL, a bare repository, or a folder with a work tree, of which the commits are read and never the files.
        shallow: Whether to fetch only the newest commit, and nothing of the branch `files`.

    Raises:
        OrganizerError: With git's own reason, if it cannot be read.
    """
    local = expanded(place)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        # Git reads this also in the process that it starts in a local repository, which may belong to another account.
        configuration = folder / "gitconfig"
        configuration.write_text(SAFE, encoding="ascii")
        above = str(folder.parent)
        repository = Repository(
            folder,
            name=without_credentials(place),
            settings=_ways(folder, above),
            GIT_CONFIG_GLOBAL=str(configuration),
            GIT_CEILING_DIRECTORIES=above,
        )
        try:
            yield _fetched(repository, str(local.resolve()) if local.exists() else place, shallow=shallow)
        finally:
            repository.close()


def _ways(folder: Path, above: str) -> Settings:
    """Return the user's settings about how servers are reached; none if git cannot read them."""
    variables = {"GIT_CEILING_DIRECTORIES": above}
    process = start_git("config", "--list", "--null", folder=folder, variables=variables)
    listed, _ = process.communicate()
    settings = (os.fsdecode(setting).partition("\n") for setting in listed.split(b"\0"))
    return [(name, value if given else "true") for name, given, value in settings if _SETTING.fullmatch(name)]


def _fetched(repository: Repository, address: str, *, shallow: bool) -> Clone:
    limit_s = SHALLOW_S if shallow else None
    patterns = ("HEAD", "refs/heads/*", "refs/remotes/*/files")
    listed = repository.run("ls-remote", "--symref", "--", address, *patterns, timeout_s=limit_s)
    found = {name: commit for commit, name in _REFERENCE.findall(listed)}
    branches = [name for name in found if _BRANCH.fullmatch(name)]
    usual = (*_SHOWN.findall(listed), b"refs/heads/main", b"refs/heads/master", *branches, b"HEAD")
    branch = next((name for name in usual if name in {*branches, b"HEAD"} & found.keys()), None)
    if branch is None:
        raise unreadable(repository.name, "there is no branch")
    wanted = {_TIP: branch}
    # Those of a clone's origin come first, because a clone of the clone would lack them.
    places = sorted(
        filter(_WITH_CONTENTS.fullmatch, found),
        key=lambda name: (b"/heads/" in name, b"/origin/" not in name),
    )
    if places and not shallow:
        wanted[_CONTENTS] = places[0]
    form = "sha256" if len(found[branch]) == 64 else "sha1"
    repository.run("init", "--quiet", "--bare", "--template=", f"--object-format={form}", ".")
    depth = "--depth=1" if shallow else "--update-shallow"
    lines = b"".join(b"+%b:%b\n" % (name, own) for own, name in wanted.items())
    whole = _WHOLE if Path(address).exists() else ()
    repository.run("fetch", depth, "--stdin", *whole, *FETCH, address, stdin=lines, timeout_s=limit_s)
    return Clone(
        repository=repository,
        branch=objects.read_path(branch.removeprefix(b"refs/heads/")),
        tip=repository.run("rev-parse", "--verify", _TIP.decode()).decode().strip(),
        pages=("branch gh-pages",) if b"refs/heads/gh-pages" in {*branches} - {branch} else (),
    )
