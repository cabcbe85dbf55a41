"""User-Mode Linux: a kernel in an ordinary process, with cgroups (version 2) that limit memory, reached by ssh over a tap device."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.systemd.machine import Failed, Impossible, Machine
from tests.systemd.root import ENTRANCE_PORT, FOLDER, GUEST, HOST, KEY, QUIETLY, needs

MEMORY = "4G"
IMAGE_SIZE = "6G"  # of a sparse file
STARTS_WITHIN_S = 240.0
TAP = "neuco-tap"
MAPPINGS = Path("/proc/sys/vm/max_map_count")
MAPPINGS_NEEDED = 1_000_000  # each page used by a process of the machine may need its own mapping here
XSTATE = Path(__file__).with_name("xstate.c")


class UserMode(Machine):
    """The root file system on an ext4 image, with one processor; data that its kernel has not written yet is lost at power-off.

    Args:
        base: The root file system to copy to the image.
    """

    title = "User-Mode Linux"
    limits_memory = True

    def __init__(self, base: Path) -> None:
        needs(
            ("linux.uml", "user-mode-linux"),
            ("mkfs.ext4", "e2fsprogs"),
            ("ip", "iproute2"),
            ("ssh", "openssh-client"),
        )
        if not Path("/dev/net/tun").exists():
            raise Impossible("there is no /dev/net/tun, over which it would be reached")
        self._image = FOLDER / "user-mode.ext4"
        self._image.unlink(missing_ok=True)
        subprocess.run(["truncate", "-s", IMAGE_SIZE, str(self._image)], check=True)
        subprocess.run([*QUIETLY, "mkfs.ext4", "-q", "-d", str(base), str(self._image)], check=True)
        self._environment = os.environ | _whole_xstate()
        self._sockets = Path(tempfile.mkdtemp(prefix="neuco-"))
        self._kernel: subprocess.Popen[bytes] | None = None
        self._ports: list[int] = []
        self._mappings = MAPPINGS.read_text(encoding="ascii")
        MAPPINGS.write_text(str(max(MAPPINGS_NEEDED, int(self._mappings))), encoding="ascii")
        _make_tap()

    def boot(self) -> None:
        """Start its kernel, and open the connection that all commands share."""
        disk = f"ubd0={self._image}"
        network = f"vec0:transport=tap,ifname={TAP},depth=128,gro=1"
        words = [
            "linux.uml",
            f"mem={MEMORY}",
            disk,
            network,
            "root=/dev/ubda",
            "rw",
            "init=/lib/systemd/systemd",
        ]
        with (FOLDER / "user-mode.log").open("ab") as log:
            self._kernel = subprocess.Popen(
                [*QUIETLY, *words, "con=null", "con0=fd:0,fd:1"],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        ends = time.monotonic() + STARTS_WITHIN_S
        while not self._connected():
            if self._kernel.poll() is not None:
                raise Impossible(
                    f"its kernel ended with status {self._kernel.returncode}: see {FOLDER}/user-mode.log"
                )
            if time.monotonic() > ends:
                raise Failed(f"it did not come up in {STARTS_WITHIN_S:g} seconds: see {FOLDER}/user-mode.log")
            time.sleep(0.5)
        for port in self._ports:
            self._forward(port)
        self.wait_for_systemd()

    def power_off(self) -> None:
        """Kill its kernel and the processes in which the kernel runs those of the machine."""
        if self._kernel is None:
            return
        if self._kernel.poll() is None:
            kernel = psutil.Process(self._kernel.pid)
            for process in [*kernel.children(recursive=True), kernel]:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue
        self._kernel.wait(timeout=STARTS_WITHIN_S)
        self._kernel = None
        subprocess.run(self._ssh("-O", "exit"), capture_output=True, check=False)

    def close(self) -> None:
        """Kill it and remove its files and its network device."""
        self.power_off()
        subprocess.run(["ip", "link", "delete", TAP], capture_output=True, check=False)
        MAPPINGS.write_text(self._mappings, encoding="ascii")
        shutil.rmtree(self._sockets, ignore_errors=True)
        self._image.unlink(missing_ok=True)

    def lead_to(self, port: int) -> None:
        """Forward the port through the connection."""
        self._ports.append(port)
        self._forward(port)

    def command(self, words: Sequence[str]) -> list[str]:
        """Return a command that runs over the connection; ssh passes one string to the remote shell."""
        quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
        return [*self._ssh(), quoted]

    def _ssh(self, *options: str) -> list[str]:
        settings = [
            "BatchMode=yes",
            "ConnectTimeout=2",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
        ]
        settings += ["LogLevel=ERROR", f"ControlPath={self._sockets}/master", f"Port={ENTRANCE_PORT}"]
        pairs = [word for setting in settings for word in ("-o", setting)]
        return ["ssh", "-F", "none", "-i", str(KEY), *pairs, *options, f"root@{GUEST}"]

    def _connected(self) -> bool:
        """Try to open the background connection, and return whether that succeeded."""
        opened = subprocess.run(
            self._ssh("-o", "ControlMaster=yes", "-f", "-N"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return opened.returncode == 0

    def _forward(self, port: int) -> None:
        subprocess.run(
            self._ssh("-O", "forward", "-R", f"127.0.0.1:{port}:127.0.0.1:{port}"),
            check=True,
            capture_output=True,
        )


def _make_tap() -> None:
    """Make the network device between this computer and the machine.

    Raises:
        Impossible: If the kernel refuses.
    """
    # A killed run leaves its device behind.
    subprocess.run(["ip", "link", "delete", TAP], capture_output=True, check=False)
    for words in (
        ["tuntap", "add", "dev", TAP, "mode", "tap"],
        ["address", "add", f"{HOST}/30", "dev", TAP],
        ["link", "set", TAP, "up"],
    ):
        done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Impossible(f"`ip {' '.join(words)}` was refused: {done.stderr.strip()}")


def _whole_xstate() -> dict[str, str]:
    """Return the additional environment for processors with AMX, on which this kernel crashes without ``xstate.c``.

    Raises:
        Impossible: If it is needed and there is no compiler.
    """
    if "amx_tile" not in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace"):
        return {}
    needs(("cc", "gcc"))
    library = FOLDER / "xstate.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(XSTATE), "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}
