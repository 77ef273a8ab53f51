# SPDX-License-Identifier: GPL-2.0
"""The packages, tried where users have them: `make test-packages`, which builds them first.

Needs the distribution's archive (root file systems, what a package depends on) and Python's, root, and a kernel that
can be traced.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from described import OUT, commands, options
from environments import PYTHON
from harness import MEMTOLL, ROOT, tool
from rootfs import root_of

pytestmark = [pytest.mark.packages, pytest.mark.xdist_group("build")]

OUTPUT: Final = ROOT / OUT
EXAMPLE: Final = ROOT / "analysis/memtoll/examples/zeroing.memtoll"
# Ubuntu 22.04's; Debian 12 has 2.36, Fedora had 2.35 in version 36.
GLIBC: Final = (2, 35)
SUITES: Final = ("bookworm", "trixie")
SECONDS: Final = 300


def run(*words: str | Path, seconds: float = SECONDS, cwd: Path | None = None) -> str:
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=seconds, check=False, cwd=cwd, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done
    return done.stdout


def inside(root: Path, *words: str | Path) -> str:
    """With this machine's kernel, in a mount namespace that goes away with it; what it writes to /opt stays."""
    enter = (
        'root=$1; shift; for dir in proc sys dev; do mount --rbind /$dir "$root/$dir" || exit; done; '
        'mount -t tmpfs none "$root/tmp" && mount -t tmpfs none "$root/run" && exec chroot "$root" "$@"'
    )
    unshared = [tool("unshare"), "--mount", "--propagation", "private"]
    return run(*unshared, "sh", "-c", enter, "sh", root, "/usr/bin/env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *words)


def works(root: Path, memtoll: str) -> None:
    """It says its version, reads, traces, and names what it has traced."""
    built = run(MEMTOLL, "--version").splitlines()[0]
    assert inside(root, memtoll, "--version").startswith(built.partition("+")[0])
    assert "SWAP 98 %" in inside(root, memtoll, "demo", "swap")
    assert "clear_block" in inside(root, memtoll, "demo")
    assert "works here" in inside(root, memtoll, "doctor")
    recorded = inside(
        root, "sh", "-c", f"{memtoll} record -o /tmp/a -- /bin/ls / >&2 && {memtoll} report --json /tmp/a"
    )
    assert '"complete":true' in recorded.replace(" ", "")


# ---- manual pages and completion ----


def test_manual_pages_are_clean(installed: Path) -> None:
    pages = sorted((installed / "share/man/man8").iterdir())
    linted = subprocess.run(
        [tool("mandoc"), "-T", "lint", *pages], capture_output=True, text=True, timeout=SECONDS, check=False
    ).stdout
    # Other packages' pages need not be here; a line that the program's help makes is as long as it is.
    known = ("referenced manual not found", "input text line longer than 80 bytes")
    assert [line for line in linted.splitlines() if not any(words in line for words in known)] == []
    for page in pages:
        done = subprocess.run(
            [tool("man"), "--warnings", "-l", "-E", "UTF-8", "-Tutf8", "-Z", page],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
        )
        assert done.returncode == 0 and done.stderr == "", done


def test_fish_completes_every_option(installed: Path) -> None:
    file = installed / "share/fish/vendor_completions.d/memtoll.fish"
    for command in commands():
        script = f'source {file}; complete -C "memtoll {command} --"'
        offered = {line.split("\t")[0] for line in run(tool("fish"), "--no-config", "-c", script).splitlines()}
        assert offered == {option.long for option in options(command)}
    script = f'source {file}; complete -C "memtoll record --probes alloc,fau"; complete -C "memtoll demo sw"'
    offered = {line.split("\t")[0] for line in run(tool("fish"), "--no-config", "-c", script).splitlines()}
    assert offered == {"alloc,faults", "swap"}


# A shell on a terminal of its own, which lists all that may follow, and then says that this was all.
ZSH: Final = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1= PS2=; fpath=($1 \\$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w shell "LISTMAX=0; setopt no_always_last_prompt; LINES=200; bindkey '^I' list-choices"
zpty -w shell "told() { zle -I; print EN''D }; zle -N told; bindkey '^O' told; print BEG''IN"
zpty -r -m shell said '*BEGIN*'
zpty -w -n shell "$2"$'\\t\\x0f'
zpty -r -m shell said '*END*'
print -r -- $said
zpty -d shell
"""


def zsh_offers(place: Path, line: str) -> set[str]:
    said = run(tool("zsh"), "-f", "-c", ZSH, "zsh", place, line, seconds=60)
    return set(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said).split())


def test_zsh_completes_every_option(installed: Path) -> None:
    place = installed / "share/zsh/site-functions"
    for command in commands():
        assert {option.long for option in options(command)} <= zsh_offers(place, f"memtoll {command} --")
    assert {"faults", "reads"} <= zsh_offers(place, "memtoll record --probes=alloc,")


# ---- Debian ----


@pytest.fixture(scope="module")
def debian() -> Path:
    """lintian has been through it: `make deb` fails where that complains."""
    (package,) = OUTPUT.glob("deb/memtoll_*.deb")
    return package


def test_debian_package(debian: Path) -> None:
    listed = run(tool("dpkg-deb"), "-c", debian)
    for name in (
        "usr/bin/memtoll",
        "usr/share/man/man8/memtoll-record.8.gz",
        "usr/share/zsh/vendor-completions/_memtoll",
    ):
        assert f" ./{name}\n" in listed
    depends = run(tool("dpkg-deb"), "-f", debian, "Depends")
    for library in ("libbpf1", "libsqlite3-0", "libdw1", "libglib2.0-0"):
        assert library in depends


def test_debian_package_installs_and_goes(debian: Path) -> None:
    """Into the release that it was built on: with what it depends on, and nothing else."""
    release = re.search(r"VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text())
    assert release
    root = root_of(release[1])
    shutil.copy(debian, root / "opt/memtoll.deb")
    inside(root, "apt-get", "-qq", "update")
    inside(root, "apt-get", "-qq", "-y", "--no-install-recommends", "install", "/opt/memtoll.deb")
    try:
        works(root, "memtoll")
    finally:
        inside(root, "dpkg", "--purge", "memtoll")
    assert not (root / "usr/bin/memtoll").exists()
    assert not list((root / "usr/share").rglob("*memtoll*"))


# ---- other distributions ----


@pytest.fixture(scope="module")
def tarball() -> Path:
    (tarball,) = OUTPUT.glob("dist/*.tar.xz")
    return tarball


def test_tarball_needs_an_old_libc_and_nothing_else(tarball: Path, tmp_path: Path) -> None:
    run(tool("tar"), "-C", tmp_path, "-xJf", tarball)
    (tree,) = tmp_path.iterdir()
    own = {path.name for path in tree.glob("lib/memtoll/*")}
    for file in (tree / "bin/memtoll", *tree.glob("lib/memtoll/*")):
        versions = re.findall(r"GLIBC_(\d+)\.(\d+)", run(tool("objdump"), "-T", file))
        assert max((int(major), int(minor)) for major, minor in versions) <= GLIBC, file
        needed = set(re.findall(r"NEEDED +(\S+)", run(tool("objdump"), "-p", file)))
        assert needed - own <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}, file
    for name in own:  # what stays dynamic is told
        assert name.partition(".")[0].removeprefix("lib") in (tree / "INSTALL").read_text(), name
    assert (tree / "share/man/man8/memtoll.8").exists()


@pytest.mark.parametrize("suite", SUITES)
def test_tarball_works_without_an_installation(suite: str, tarball: Path) -> None:
    root = root_of(suite)
    shutil.rmtree(root / "opt/dist", ignore_errors=True)
    (root / "opt/dist").mkdir()
    run(tool("tar"), "-C", root / "opt/dist", "--strip-components=1", "-xJf", tarball)
    works(root, "/opt/dist/bin/memtoll")


# ---- Python ----


def test_wheel_in_a_fresh_environment(tmp_path: Path) -> None:
    (wheel,) = OUTPUT.glob("wheel/*.whl")
    assert wheel.name.startswith("memtoll-")
    run(PYTHON, "-m", "venv", tmp_path / "venv")
    run(tmp_path / "venv/bin/pip", "install", "-q", "--no-compile", "--disable-pip-version-check", f"{wheel}[pytest]")
    program = "import memtoll, sys; print(memtoll.__file__, memtoll.open(sys.argv[1]))"
    said = run(tmp_path / "venv/bin/python", "-c", program, EXAMPLE, cwd=tmp_path)
    assert said.startswith(str(tmp_path)) and "zero.libc" in said
    run(tmp_path / "venv/bin/memtoll-analysis", "--help", cwd=tmp_path)
    # pytest finds the plugin by itself, and without pandas: it is imported at every start.
    program = "import pytest, sys; pytest.main(['--markers']); print('pandas' in sys.modules)"
    said = run(tmp_path / "venv/bin/python", "-c", program, cwd=tmp_path)
    assert "@pytest.mark.memtoll(" in said and said.endswith("False\n"), said
