# SPDX-License-Identifier: GPL-2.0
"""What can be said of the sources without running them: each check counts as a test does, with what it found.

A tool that is not to be had, or is of another version than the sources are written for, leaves its check undecided.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from environments import PYTHON, python_with
from harness import MEMTOLL, ROOT

# Of the next minor version, rules and format are others.
PACKAGES: Final = ("ruff>=0.17,<0.18", "mypy>=2.4,<2.5")
CLANG: Final = 14  # Debian 12's; each formats differently
SECONDS: Final = 900
TESTS: Final = "userspace/tests"
SHELL: Final = "(ba|da)?sh"


class Undecided(Exception):
    pass


@dataclass(frozen=True)
class Check:
    name: str
    words: Callable[[], list[str]]
    folder: Path = ROOT


@dataclass
class Result:
    check: Check
    seconds: float = 0
    found: str = ""
    undecided: str = ""


def scripts(interpreter: str, suffix: str | None = None) -> Iterator[str]:
    """Files that begin by naming it, with this suffix where one is given."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.is_file() and (suffix is None or path.suffix == suffix):
            with path.open("rb") as file:
                if re.match(rf"#!.*\b{interpreter}\b".encode(), file.readline(100)):
                    yield name


def tool(name: str) -> str:
    """Of clang's tools the one of the version that is asked for."""
    for candidate in (f"{name}-{CLANG}", name):
        path = shutil.which(candidate)
        if path:
            said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
            if f"version {CLANG}." in said:
                return path
    raise Undecided(f"there is no {name} {CLANG}")


def make(variable: str, name: str, target: str) -> list[str]:
    out = MEMTOLL.parent.relative_to(ROOT) if MEMTOLL.is_relative_to(ROOT) else MEMTOLL.parent
    return ["make", "--no-print-directory", "-k", f"O={out}", f"{variable}={tool(name)}", target]


def package(name: str) -> str:
    try:
        return str(python_with(PACKAGES).parent / name)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        raise Undecided(f"no {' '.join(PACKAGES)} to be had: {str(error).splitlines()[-1]}") from error


def ruff(*words: str) -> list[str]:
    return [package("ruff"), *words, "--no-cache", "analysis", TESTS, *scripts("python3", "")]


def mypy(of: str, *words: str) -> list[str]:
    cache = MEMTOLL.parent / "mypy" / of
    return [package("mypy"), f"--python-executable={PYTHON}", f"--cache-dir={cache}", *words]


CHECKS: Final = (
    Check("clang-tidy", lambda: make("CLANG_TIDY", "clang-tidy", "lint-tidy")),
    Check("clang-format", lambda: make("CLANG_FORMAT", "clang-format", "lint-format")),
    Check("shellcheck", lambda: ["shellcheck", *scripts(SHELL)]),
    Check("ruff check", lambda: ruff("check", "--quiet")),
    Check("ruff format", lambda: ruff("format", "--check", "--quiet")),
    Check("mypy analysis", lambda: mypy("analysis"), ROOT / "analysis"),
    Check(
        "mypy tests",
        lambda: mypy(
            "tests", f"--config-file={TESTS}/pyproject.toml", "--scripts-are-modules", TESTS, *scripts("python3", "")
        ),
    ),
)


def carried_out(check: Check) -> Result:
    # A make of its own, whose jobs are not those of the make that called this.
    variables = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    begun = time.monotonic()
    result = Result(check)
    try:
        done = subprocess.run(
            check.words(),
            cwd=check.folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode:
            result.found = done.stdout or f"status {done.returncode}"
    except Undecided as error:
        result.undecided = str(error)
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        result.undecided = str(error)
    except (OSError, subprocess.SubprocessError) as error:
        result.found = str(error)
    result.seconds = time.monotonic() - begun
    return result


def write(file: Path, results: list[Result]) -> None:
    """As JUnit's, which is what the sum reads."""
    suite = ElementTree.Element("testsuite", name="lint")
    for result in results:
        values = {"classname": "lint", "name": result.check.name, "time": f"{result.seconds:.1f}"}
        case = ElementTree.SubElement(suite, "testcase", values)
        if result.found:
            ElementTree.SubElement(case, "failure", message="found something")
        elif result.undecided:
            ElementTree.SubElement(case, "skipped", message=f"undecided: {result.undecided}")
    ElementTree.ElementTree(suite).write(file)


def lint(kind: Path) -> bool:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(carried_out, CHECKS))
    for result in results:
        if result.found:
            print(f"{result.found.rstrip()}\n{result.check.name}: FAILED", flush=True)
        elif result.undecided:
            print(f"{result.check.name}: not checked: {result.undecided}", flush=True)
    write(kind / "lint.xml", results)
    return not any(result.found for result in results)
