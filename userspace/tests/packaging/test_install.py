# SPDX-License-Identifier: GPL-2.0
"""`make install` and `make uninstall`, and the lists that packages are made by."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from described import commands, make
from harness import MEMTOLL, ROOT

pytestmark = pytest.mark.xdist_group("build")


def files(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if not path.is_dir()}


def test_all_is_in_place(installed: Path) -> None:
    expected = {
        "bin/memtoll",
        "share/man/man8/memtoll.8",
        "share/bash-completion/completions/memtoll",
        "share/zsh/site-functions/_memtoll",
        "share/fish/vendor_completions.d/memtoll.fish",
        "share/doc/memtoll/README.md",
        "share/doc/memtoll/LICENSE",
        "share/doc/memtoll/overhead.md",
        *(f"share/man/man8/memtoll-{command}.8" for command in commands()),
    }
    there = files(installed)
    assert expected <= there
    documents = {f"share/doc/memtoll/{path.name}" for path in (ROOT / "userspace" / "doc").glob("*.md")}
    units = {f"lib/systemd/system/{path.name}" for path in (ROOT / "packaging").glob("systemd/*.*")}
    examples = {f"share/doc/memtoll/examples/{path.name}" for path in (ROOT / "packaging/monitoring").glob("*")}
    assert units and len(examples) == 3
    assert there == expected | documents | units | examples
    done = subprocess.run(
        [installed / "bin" / "memtoll", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert re.match(r"memtoll \d+\.\d+\.\d+\S*\n", done.stdout)


def test_nothing_names_where_it_was_built(installed: Path) -> None:
    for path in installed.rglob("*"):
        if path.is_file() and path.parent.name != "bin":
            text = path.read_text()
            assert str(ROOT) not in text and "@" + "OPTIONS@" not in text and not re.search(r"@[A-Z_]{4,}@", text), path


def test_links_between_installed_documents(installed: Path) -> None:
    """Those to what is only in the sources are known."""
    place = installed / "share/doc/memtoll"
    missing = {
        link
        for path in place.glob("*.md")
        for link in re.findall(r"\]\(([^):#]+)", path.read_text())
        if link != "https" and not (place / link).exists()
    }
    assert {Path(link).name for link in missing} <= {"README.md", "README", "HACKING.md"}, missing
    assert "README.md" not in missing


@pytest.mark.slow
def test_uninstall_leaves_nothing(tmp_path: Path) -> None:
    where = [f"DESTDIR={tmp_path}", "PREFIX=/usr"]
    others = tmp_path / "usr/bin/another"
    make("install-built", *where)
    others.touch()
    make("uninstall", *where)
    assert files(tmp_path) == {"usr/bin/another"}


def test_the_debian_package_is_built_with_what_deps_installs() -> None:
    """A library that is added to .ci/deps is added to debian/control, too."""
    look = (ROOT / ".ci/deps").read_text().partition("look() {")[2].partition("\n\tcase ")[0]
    wanted = set(re.findall(r"need_(?:tool|library|header) \S+ (\S+)$", look, re.M)) | {"bpftool"}
    control = (ROOT / "packaging/debian/control").read_text().partition("Build-Depends:")[2].partition("\n\n")[0]
    named = set(re.findall(r"^ *([a-z0-9.+-]+)", control, re.M))
    # What every build has.
    assert wanted - {"make", "gcc", "g++", "binutils", "libc6-dev"} <= named


def test_the_version_is_one() -> None:
    said = subprocess.run([ROOT / "packaging/version"], capture_output=True, text=True, timeout=60, check=True).stdout
    release = subprocess.run(
        [ROOT / "packaging/version", "release"], capture_output=True, text=True, timeout=60, check=True
    ).stdout.strip()
    assert re.fullmatch(rf"{re.escape(release)}(\+\S+)?\n", said)
    built = subprocess.run([MEMTOLL, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert built.startswith((f"memtoll {release}", "memtoll unknown"))
