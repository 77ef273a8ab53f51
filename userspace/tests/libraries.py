# SPDX-License-Identifier: GPL-2.0
"""Libraries of other releases of this distribution, unpacked beside what is built.

apt fetches them with directories of its own, so nothing is installed and the system's lists stay as
they are; its signatures are checked as always. A suite that the archive has closed cannot be had by
anybody: then the test that needs it is skipped and says so. Everything else that goes wrong fails.
"""

from __future__ import annotations

import fcntl
import functools
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from environments import place

SECONDS = 240

# The C library of each release of a distribution, by the word that its archive has for it.
SUITES = {
    "debian": {"bullseye": "2.31", "bookworm": "2.36", "trixie": "2.41"},
    "ubuntu": {"focal": "2.31", "jammy": "2.35", "noble": "2.39"},
}


def distribution() -> str:
    text = Path("/etc/os-release").read_text()
    found = re.search(r'^ID="?(\w+)', text, re.M)
    assert found and found[1] in SUITES, "libraries of other releases are known of Debian and Ubuntu only"
    return found[1]


def own_suite() -> str:
    """The suite that this system is."""
    found = re.search(r'^VERSION_CODENAME="?(\w+)', Path("/etc/os-release").read_text(), re.M)
    return found[1] if found else ""


@functools.cache
def archive() -> str:
    """Where this system's own apt takes its distribution's main archive from."""
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)|$(ORIGIN)|$(LABEL)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    name = distribution()
    for line in targets.stdout.splitlines():
        uri, origin, label = line.split("|")
        if origin.lower() == label.lower() == name:
            return uri
    raise AssertionError(f"apt of this system knows no archive of {name}")


@contextmanager
def patience() -> Iterator[None]:
    """The limit of a single test is for what it does, not for a download."""
    left = signal.alarm(0)
    try:
        yield
    finally:
        signal.alarm(left)


def options(suite: str) -> list[str]:
    """Private directories of apt for one suite, its list of packages read once."""
    base = place() / "apt" / suite
    for name in ("lists/partial", "cache/archives/partial", "parts"):
        (base / name).mkdir(parents=True, exist_ok=True)
    (base / "status").touch()
    keyring = f"/usr/share/keyrings/{distribution()}-archive-keyring.gpg"
    (base / "sources.list").write_text(f"deb [signed-by={keyring}] {archive()} {suite} main\n")
    words = [
        f"Dir::State::Lists={base}/lists",
        f"Dir::State::status={base}/status",
        f"Dir::Cache={base}/cache",
        f"Dir::Etc::sourcelist={base}/sources.list",
        f"Dir::Etc::sourceparts={base}/parts",
        "APT::Sandbox::User=",
        "Acquire::Languages=none",
        "Acquire::Retries=3",
    ]
    return ["-qq", *(part for word in words for part in ("-o", word))]


def apt(suite: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["apt-get", *options(suite), *words],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def package(suite: str, name: str) -> Path:
    """The directory into which a package of a suite is unpacked."""
    with patience(), (place() / "packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        target = place() / "packages" / suite / name
        if (target / "complete").exists():
            return target / "root"
        target.mkdir(parents=True, exist_ok=True)
        lists = place() / "apt" / suite / "read"
        if not lists.exists():
            done = apt(suite, "update", cwd=target)
            if "does not have a Release file" in done.stdout:
                pytest.skip(f"the archive no longer serves {suite}")
            assert done.returncode == 0 and "Failed" not in done.stdout, f"{suite}: {done.stdout}"
            lists.touch()
        done = apt(suite, "download", name, cwd=target)
        assert done.returncode == 0, f"{suite} {name}: {done.stdout}"
        (archived,) = target.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", archived, target / "root"], timeout=60, check=True)
        archived.unlink()
        (target / "complete").touch()
        return target / "root"


def preloadable(name: str) -> Path:
    """An allocator of this system that can be preloaded: jemalloc, tcmalloc or mimalloc."""
    patterns = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so.*"}
    for directory in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"):
        for path in sorted(Path(directory).glob(patterns[name])):
            return path
    raise AssertionError(f"{name} is not installed; .ci/deps test installs it")
