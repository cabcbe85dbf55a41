"""Reading repositories: what others committed is data, what the user configured decides nothing, and git's reasons are passed on."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from leaderboard.git import Blob, Clone, Repository, cloned, plain_folder
from leaderboard.git.objects import LATEST_S, write_path
from scoring.errors import OrganizerError
from tests.leaderboard.harness.git_server import add_file, bare, blob, commit_tree, git, serve

pytestmark = pytest.mark.processes

WHO = "A <a@example.org> 1700000000 +0000"
TEXT = b"one\r\ntwo\n"
TOKEN = "a-token"


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """A bare repository with two commits and the branch `files`."""
    board = bare(tmp_path / "board.git")
    add_file(board, "README.md", TEXT)
    add_file(board, "one.txt", b"1")
    add_file(board, "part", b"content", branch="files")
    return board


def contents(clone: Clone) -> bytes:
    """Return the newest commit of the branch `files` that was fetched."""
    return clone.repository.run("for-each-ref", "--format=%(objectname)", "refs/neuco/files")


def seen(clone: Clone) -> tuple[object, ...]:
    """Return everything that can be read in a clone."""
    repository = clone.repository
    commits = tuple(map(repository.commit, repository.commits(clone.tip)))
    files = {path: repository.content(file.name) for path, file in repository.files(clone.tip).items()}
    first, last = commits[0].name, commits[-1].name
    changed = repository.changed(first, last)
    changing = repository.commits_changing(changed, first, last)
    return clone.branch, contents(clone), commits, files, changed, changing, repository.is_shallow


def read(place: Path | str) -> tuple[object, ...]:
    """Return everything that can be read in a repository."""
    with cloned(str(place)) as clone:
        return seen(clone)


def commit(board: Path, text: bytes, *, branch: str = "main") -> str:
    """Put a commit, of which only the tree and the parent are given, on top of a branch."""
    tree, parent = (git("rev-parse", f"main{of}", at=board).encode() for of in ("^{tree}", ""))
    content = b"tree %b\nparent %b\n%b" % (tree, parent, text)
    options = ("-t", "commit", "-w", "--literally", "--stdin")
    name = git("hash-object", *options, at=board, stdin=content)
    git("update-ref", f"refs/heads/{branch}", name, at=board)
    return name


@pytest.mark.parametrize(
    ("headers", "author", "at"),
    [
        (f"author {WHO}\ncommitter {WHO}\n\nm".encode(), "A", 1_700_000_000),
        (b"author \ncommitter \n\nm", "", 0),
        (b"\nm", "", 0),
        (b"author A <a>\ncommitter A <a>\n\nm", "A", 0),
        (b"author A <a> x\ncommitter A <a> x\n\nm", "A", 0),
        (b"author A <a> -5 +0000\ncommitter A <a> -5 +0000\n\nm", "A", 0),
        (b"author A <a> 1 +0000\ncommitter A <a> 999999999999 +9999\n\nm", "A", LATEST_S),
        (b"author A <a> 1 +0000\ncommitter A <a> %b +0000\n\nm" % (b"9" * 40), "A", LATEST_S),
        (b"author A> <<a>> 1\ncommitter B <b>> 7 +0000 8\n\nm", "A>", 7),
        (b"author J\xf6rg <j> 1 +0000\ncommitter J <j> 7 +0000\nencoding latin-1\n\nm", "J�rg", 7),
        (b"author A\0B\r <a> 1 +0000\ncommitter A <a> 7 +0000\nencoding no such\n\n\0", "A\0B", 7),
        (b"committer A <a> 7 +0000\nauthor B <a> 1 +0000\nauthor C <a> 1 +0000\n", "B", 7),
    ],
)
def test_a_commit_with_any_author_and_date_is_read(board: Path, headers: bytes, author: str, at: int) -> None:
    """What is missing or malformed is empty; everything else about the commit and those before it is read."""
    before = git("rev-parse", "main", at=board)
    name = commit(board, headers)
    with cloned(str(board)) as clone:
        assert clone.tip == name
        found = clone.repository.commit(name)
        assert (found.author, found.at) == (author, datetime.fromtimestamp(at, UTC))
        assert found.parents == (before,)
        assert clone.repository.commits(name)[-2:] == [before, name]
        assert found.content.endswith(headers)


def test_any_path_is_read(board: Path) -> None:
    """A path of a file is any bytes, and a link or submodule is no file."""
    names = (
        b"\xff",
        "ä".encode(),
        b"a\tb",
        b'"quoted"',
        b"a -> b",
        b":(top)x",
        b"-rf",
        b"*",
        b" ",
        b"\\377",
        b"HEAD",
    )
    content = blob(board, b"x")
    inside = git("mktree", "-z", at=board, stdin=b"100644 blob %b\treveal.json\0" % content.encode())
    entries = [b"100644 blob %b\t%b" % (content.encode(), name) for name in (*names, b"a\nb")]
    entries += [b"040000 tree %b\tfolder\xff" % inside.encode(), b"120000 blob %b\tlink" % content.encode()]
    fake = b"160000 commit %b\tsub100644 blob %b       1\tREADME.md" % (b"1" * 40, content.encode())
    start, tip = git("rev-parse", "main", at=board), commit_tree(board, [*entries, fake])
    with cloned(str(board)) as clone:
        repository, files = clone.repository, clone.repository.files(tip)
        paths = {write_path(path) for path in files}
        assert paths == {*names, b"a\nb", b"folder\xff/reveal.json"}
        asked = [path for path in files if "\n" not in path]
        assert set(repository.blobs([(tip, path) for path in asked])) == {Blob(name=content, size=1)}
        assert {write_path(path) for path in repository.changed(start, tip)} >= paths
        for path in asked:
            assert repository.commits_changing([path], start, tip) == {tip}
            assert repository.commits_changing([path], tip, tip) == frozenset()
        assert repository.blobs([(tip, "missing file"), (tip, "folder")]) == [None, None]


def branch_named_head(board: Path) -> None:
    """Add a branch that has the name of the reference to the default branch."""
    git("update-ref", "refs/heads/HEAD", "main~1", at=board)


def misleading_tags(board: Path) -> None:
    """Add tags with the names of branches, and one of a file."""
    other, file = (git("rev-parse", name, at=board) for name in ("main~1", "main:one.txt"))
    for name in ("main", "files", "HEAD", "refs/heads/main", "0" * 40):
        git("update-ref", f"refs/tags/{name}", other, at=board)
    git("update-ref", "refs/tags/file", file, at=board)


def odd_branches(board: Path) -> None:
    """Add branches whose names are options, contain other bytes, or end like another."""
    for name in ("-x", "--upload-pack=touch", "a/refs/heads/main", "x/files", "ä"):
        git("update-ref", f"refs/heads/{name}", "main~1", at=board)
    with (board / "packed-refs").open("ab") as packed:
        packed.write(b"%b refs/heads/\xff\n" % git("rev-parse", "main", at=board).encode())


def replaced_commit(board: Path) -> None:
    """Replace the newest commit with the first."""
    git("update-ref", f"refs/replace/{git('rev-parse', 'main', at=board)}", "main~1", at=board)


def hostile_configuration(board: Path) -> None:
    """Configure the repository itself to run programs and to convert its files."""
    script = board.parent / "evil"
    script.write_text(f"#!/bin/sh\ntouch {board.parent}/ran\ncat\n")
    script.chmod(0o755)
    for key, value in {
        "uploadpack.packObjectsHook": str(script),
        "core.fsmonitor": str(script),
        "core.hooksPath": str(board.parent),
        "core.autocrlf": "true",
        "core.pager": str(script),
    }.items():
        git("config", key, value, at=board)


@pytest.mark.parametrize(
    "change", [branch_named_head, misleading_tags, odd_branches, replaced_commit, hostile_configuration]
)
def test_other_references_and_settings_of_a_repository_change_nothing(
    board: Path, change: Callable[[Path], None]
) -> None:
    """Branch, commits and files are the same as without them, and no program runs."""
    plain = read(board)
    change(board)
    assert read(board) == read(f"file://{board}") == plain
    assert not (board.parent / "ran").exists()


def test_the_branch_that_visitors_see_is_read(board: Path) -> None:
    """It is the default branch; else main, master or any other but `files`; else the commit that is checked out."""
    tip = git("rev-parse", "main", at=board)
    for head, branches, expected in (
        ("refs/heads/odd", {"odd", "main", "master"}, "odd"),
        ("refs/heads/gone", {"odd", "main", "master"}, "main"),
        ("refs/heads/gone", {"odd", "master"}, "master"),
        ("refs/heads/files", {"odd"}, "odd"),
        (None, set[str](), "HEAD"),
    ):
        other = bare(board.parent / f"{len(list(board.parent.iterdir()))}.git")
        git(
            "fetch", "-q", str(board), *(f"main:refs/heads/{name}" for name in (*branches, "files")), at=other
        )
        if head is None:
            (other / "HEAD").write_text(f"{tip}\n")
        else:
            git("symbolic-ref", "HEAD", head, at=other)
        with cloned(str(other)) as clone:
            assert (clone.branch, clone.tip) == (expected, tip)


def test_what_is_read_in_a_clone_is_committed(board: Path, tmp_path: Path) -> None:
    """Its own branch, as committed, also of a clone with converted files, another remote, few commits or a second work tree."""
    plain, tip = read(board), git("rev-parse", "main", at=board)
    for number, options in enumerate(
        (["-c", "core.autocrlf=true"], ["--origin=upstream"], ["--no-checkout"])
    ):
        clone = tmp_path / str(number)
        git("clone", "-q", *options, str(board), str(clone), at=tmp_path)
        (clone / "README.md").write_text("changed")
        git("worktree", "add", "-q", "--detach", str(tmp_path / f"tree{number}"), at=clone)
        assert plain_folder(str(clone)) is None
        assert read(clone) == plain
        assert read(tmp_path / f"tree{number}")[2:] == plain[2:]
    git("clone", "-q", "--depth=1", f"file://{board}", "few", at=tmp_path)
    with cloned(str(tmp_path / "few")) as few:
        assert (few.repository.commits(tip), few.repository.is_shallow) == ([tip], True)
    with cloned(str(board), shallow=True) as few:
        assert (few.repository.commits(tip), contents(few)) == ([tip], b"")


def test_a_repository_with_sha256_is_read(tmp_path: Path) -> None:
    """Names of objects may have 64 digits."""
    git("init", "-q", "--bare", "--object-format=sha256", "-b", "main", "new.git", at=tmp_path)
    tip = commit_tree(tmp_path / "new.git", [f"100644 blob {blob(tmp_path / 'new.git', TEXT)}\tREADME.md"])
    with cloned(str(tmp_path / "new.git")) as clone:
        file = clone.repository.files(tip)["README.md"]
        assert (clone.tip, len(tip), clone.repository.content(file.name)) == (tip, 64, TEXT)


CONFIGURATIONS = {
    "remote": "[clone]\n\tdefaultRemoteName = upstream\n\trejectShallow = true\n[checkout]\n\tdefaultRemote = x\n",
    "line ends": "[core]\n\tautocrlf = true\n\teol = crlf\n\tquotePath = false\n\tattributesFile = {home}/attributes\n",
    "programs": "[core]\n\thooksPath = {home}\n\tfsmonitor = {evil}\n\tpager = {evil}\n\talternateRefsCommand = {evil}\n"
    "[diff]\n\texternal = {evil}\n[interactive]\n\tdiffFilter = {evil}\n[uploadpack]\n\tpackObjectsHook = {evil}\n",
    "filters": '[filter "lfs"]\n\tsmudge = {evil}\n\tprocess = {evil}\n\trequired = true\n',
    "signatures": "[gpg]\n\tprogram = {evil}\n\tformat = ssh\n[commit]\n\tgpgSign = true\n[log]\n\tshowSignature = true\n",
    "templates": "[init]\n\ttemplateDir = {home}/template\n\tdefaultBranch = other\n",
    "protocols": '[protocol]\n\tallow = never\n\tversion = 0\n[protocol "file"]\n\tallow = never\n',
    "ownership": "[safe]\n\tdirectory =\n\tbareRepository = explicit\n",
    "strictness": "[transfer]\n\tfsckObjects = true\n\thideRefs = refs/heads\n"
    "[fetch]\n\tprune = true\n\tunpackLimit = 1\n\trecurseSubmodules = true\n",
    "words": "[color]\n\tui = always\n[i18n]\n\tlogOutputEncoding = UTF-16\n[log]\n\tdate = relative\n"
    "[diff]\n\trenames = copies\n\tnoprefix = true\n",
    "layout": "[core]\n\tbare = false\n\tworktree = /\n\trepositoryFormatVersion = 1\n"
    "[extensions]\n\tobjectFormat = sha256\n[alias]\n\tls-tree = !false\n",
    "garbage": "[core\n",
}  # fmt: skip
VARIABLES = {
    "GIT_DIR": "{home}", "GIT_WORK_TREE": "{home}", "GIT_COMMON_DIR": "{home}", "GIT_INDEX_FILE": "{home}/index",
    "GIT_OBJECT_DIRECTORY": "{home}", "GIT_ALTERNATE_OBJECT_DIRECTORIES": "{home}", "GIT_NAMESPACE": "other",
    "GIT_CONFIG": "{home}/x", "GIT_CONFIG_SYSTEM": "{home}/.gitconfig", "GIT_CONFIG_PARAMETERS": "'clone.defaultremotename=x'",
    "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "never",
    "GIT_TEMPLATE_DIR": "{home}/template", "GIT_DEFAULT_HASH": "sha256", "GIT_REPLACE_REF_BASE": "refs/heads/",
    "GIT_GRAFT_FILE": "{home}/grafts", "GIT_SHALLOW_FILE": "{home}/grafts", "GIT_ICASE_PATHSPECS": "1",
    "GIT_TRACE": "1", "GIT_TRACE2": "1", "GIT_ALLOW_PROTOCOL": "https", "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_ATTR_SOURCE": "none", "GIT_EXTERNAL_DIFF": "{evil}", "GIT_PAGER": "{evil}", "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1",
    "GIT_CEILING_DIRECTORIES": "/", "GIT_FLUSH": "0", "GIT_PREFIX": "x/",
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a user whose attributes, template and programs show that they were used."""
    home = tmp_path / "home"
    for folder in (".config/git", "template/hooks"):
        (home / folder).mkdir(parents=True)
    (home / "evil").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
    (home / "evil").chmod(0o755)
    for hook in ("reference-transaction", "post-checkout", "template/hooks/reference-transaction"):
        (home / hook).symlink_to(home / "evil")
    for attributes in (home / ".config/git/attributes", home / "attributes"):
        attributes.write_text("* text eol=crlf ident filter=lfs working-tree-encoding=UTF-16\n")
    (home / "grafts").write_text(f"{'1' * 40}\n")
    for name in [name for name in os.environ if name.startswith(("GIT_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    return home


def test_no_setting_of_the_user_changes_what_is_read(board: Path, home: Path) -> None:
    """In the home folder and in XDG's: everything that is read is the same, and no program runs."""
    plain = read(board)
    for name, text in CONFIGURATIONS.items():
        for place in (".gitconfig", ".config/git/config"):
            (home / place).write_text(text.format(home=home, evil=home / "evil"))
        assert read(board) == plain, name
    assert not (home.parent / "ran").exists()


def test_settings_that_git_cannot_read_are_no_missing_git(board: Path, home: Path) -> None:
    """GitPython runs git when a process imports it."""
    (home / ".gitconfig").write_text(CONFIGURATIONS["garbage"])
    code = "import sys\nfrom leaderboard.git import cloned\nwith cloned(sys.argv[1]): pass"
    done = subprocess.run([sys.executable, "-c", code, board], capture_output=True, text=True, check=False)
    reason = f"git cannot use the user's settings: bad config line 1 in file {home}/.gitconfig. Correct the setting"
    assert reason in done.stderr.splitlines()[-1]


def test_no_variable_of_the_user_changes_what_is_read(
    board: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alone, and all together."""
    plain = read(board)
    values = {name: value.format(home=home, evil=home / "evil") for name, value in VARIABLES.items()}
    for name, value in values.items():
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert read(board) == plain, name
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    assert read(f"file://{board}") == plain
    assert not (home.parent / "ran").exists()


def test_a_server_is_reached_as_the_user_has_configured(board: Path, home: Path) -> None:
    """Addresses that the user rewrites, and the user's credentials and proxy, are used."""
    plain = read(board)
    helper = f"!f() {{ echo username=x; echo password={TOKEN}; }}; f"
    text = (
        f'[url "file://{board.parent}/"]\n\tinsteadOf = "challenge:"\n[credential]\n\thelper = "{helper}"\n'
    )
    (home / ".gitconfig").write_text(text)
    assert read("challenge:board.git") == plain
    with serve(board.parent, TOKEN) as server:
        assert read(f"{server.url}/board.git") == plain
        (home / ".gitconfig").write_text(f"{text}[http]\n\tproxy = http://127.0.0.1:9\n")
        with pytest.raises(OrganizerError, match=r"127\.0\.0\.1 port 9.* Check the network, and the proxy"):
            read(f"{server.url}/board.git")


def test_a_folder_of_another_account_is_read(board: Path, home: Path) -> None:
    """Somebody who names a folder trusts it, and no command runs in it that its configuration names."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    plain = read(board)
    for path in (board, *board.rglob("*")):
        os.chown(path, 65534, 65534)
    assert read(board) == plain
    assert home.is_dir()


@pytest.mark.parametrize(
    ("place", "reason", "hint"),
    [
        ("nowhere", "'nowhere' does not appear to be a git repository", "Check the address: it must be"),
        (
            "http://x:secret@127.0.0.1:9/b.git",
            "unable to access 'http://127.0.0.1:9/b.git/'",
            "Check the network",
        ),
        ("ext::sh -c true", "transport 'ext' not allowed", "Use an address with https://"),
        (
            "SERVER/board.git",
            "could not read Username for 'SERVER': terminal prompts disabled",
            "Let git sign in",
        ),
        ("SERVER/board.git", "Authentication failed for 'SERVER/board.git/'", "Let git sign in"),
        ("SERVER/none.git", "repository 'SERVER/none.git/' not found", "Check the address: it must be"),
        ("empty.git", "there is no branch", "Check the address: it must be"),
        ("damaged.git", "", ""),
    ],
)
def test_a_refusal_gives_the_reason_of_git(
    board: Path, home: Path, monkeypatch: pytest.MonkeyPatch, place: str, reason: str, hint: str
) -> None:
    """One sentence with the reason, without credentials, and then what to do; the exit code is not that of a verdict."""
    monkeypatch.chdir(board.parent)
    bare(board.parent / "empty.git")
    git("clone", "-q", "--bare", "--no-hardlinks", str(board), "damaged.git", at=board.parent)
    for path in (board.parent / "damaged.git/objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"")
    if "Username" not in reason:
        helper = f"!echo username=x; echo password={TOKEN if 'none' in place else 'wrong'} #"
        (home / ".gitconfig").write_text(f'[credential]\n\thelper = "{helper}"\n')
    with serve(board.parent, TOKEN) as server, pytest.raises(OrganizerError) as error:
        read(place.replace("SERVER", server.url))
    sentence = error.value.sentence.replace(server.url, "SERVER")
    assert sentence.startswith(f"git cannot use {place.replace('x:secret@', '')}: ")
    assert reason in sentence
    assert error.value.hint.startswith(hint)
    assert (error.value.exit_code, "\n" in sentence, "secret" in error.value.message) == (2, False, False)
    assert not sentence.rpartition(": ")[2].startswith(("fatal", "error", "warning", "git gives no"))


CHANGED = "@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n@@@@\nHost key for x has changed.\nHost key verification failed."
HIDDEN = "remote: \nremote: ====\nremote: \nremote: ERROR: The project could not be found.\nremote: \nremote: ====\nremote: "
DENIED = "----\nAuthorized use only.\n----\n** WARNING: not post-quantum.\nx: Permission denied (publickey)."


@pytest.mark.parametrize(
    ("program", "words", "sentence"),
    [
        ("ssh", CHANGED, "Host key for x has changed; Host key verification failed. Compare"),
        ("ssh", HIDDEN, "The project could not be found. "),
        ("ssh", DENIED, "** WARNING: not post-quantum; x: Permission denied (publickey). Let git sign in"),
        (
            "git",
            "error: unknown option `x\nusage: git --shallow",
            "unknown option `x. Install git 2.32 or newer.",
        ),
    ],
)
def test_the_reason_is_told_whatever_comes_before_and_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, words: str, sentence: str
) -> None:
    """A server may print anything before it, ssh decorates its warnings, and an old git adds all its options."""
    failing = tmp_path / program
    failing.touch(0o755)
    failing.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{words}\nEND\nexit 255\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(OrganizerError) as error:
        read("git@x:board")
    assert f"git cannot use git@x:board: {sentence}" in str(error.value)


def test_a_git_that_ends_while_objects_are_read_says_why(
    board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own reason is shown, and the next read starts another process."""
    repository = Repository(board)
    tip = repository.commits("HEAD")[-1]
    before, real = os.environ["PATH"], shutil.which("git")
    failing = tmp_path / "failing"
    failing.mkdir()
    (failing / "git").write_text(
        f'#!/bin/sh\ncase "$*" in *--batch) echo "fatal: out of memory" >&2; exit 128;; esac\nexec {real} "$@"\n'
    )
    (failing / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{failing}:{before}")
    with pytest.raises(OrganizerError, match=r": out of memory\. Free some space or memory"):
        repository.content(tip)
    monkeypatch.setenv("PATH", before)
    assert repository.content(tip).startswith(b"tree ")
    with pytest.raises(OrganizerError, match=r"object 0{40} is missing"):
        repository.content("0" * 40)
    assert repository.content(tip).startswith(b"tree ")


def test_folders_that_are_nested_too_deeply_for_git_hide_nothing_else(board: Path) -> None:
    """Git ends without a word in 30,000 folders, so only the names at the top are read then."""
    tree = git("rev-parse", "main^{tree}", at=board)
    for name in [b"d"] * 30_000 + [b"zz"]:
        content = b"40000 %b\0%b" % (name, bytes.fromhex(tree))
        content = b"tree %d\0%b" % (len(content), content)
        tree = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        place = board / "objects" / tree[:2] / tree[2:]
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(zlib.compress(content, 0))
    repository, before = Repository(board), git("rev-parse", "main", at=board)
    after = git("commit-tree", tree, "-p", before, "-m", "deep", at=board)
    changed = {path.partition("/")[0] for path in repository.changed(before, after)}
    assert changed == {"README.md", "one.txt", "zz"}
    assert {path.partition("/")[0] for path in repository.paths(after)} == {"zz"}
