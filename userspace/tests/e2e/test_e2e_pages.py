# SPDX-License-Identifier: GPL-2.0
"""The pages: every command does what it says; links, paths, options and lists are those of the code."""

from __future__ import annotations

import fnmatch
import http.server
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

import extras_environment
import facts
from harness import MEMTOLL, ROOT, Program, memtoll, tool, workload
from shape import TOLLS
from swapping import in_cgroup, make_cgroup

PAGES: Final = [
    ROOT / "README.md",
    ROOT / "userspace" / "HACKING.md",
    ROOT / "analysis" / "README.md",
    *sorted((ROOT / "userspace" / "doc").glob("*.md")),
]
DOC: Final = {page.name: page.read_text() for page in PAGES if page.parent.name == "doc"}
README: Final = PAGES[0].read_text()
COLLECTOR: Final = "http://collector:4318"
TRACING: Final = ("record", "stat", "compare", "gate", "doctor", "top", "hold")


def commands(*tools: str) -> list[list[str]]:
    """The indented lines of all pages that begin with one of these, each once: what they print begins otherwise."""
    lines = [
        line.split(" #")[0].strip()
        for page in PAGES
        for line in re.findall(rf"^    (?:sudo )?((?:{'|'.join(tools)}) .*)$", page.read_text(), re.M)
    ]
    return [shlex.split(line) for line in dict.fromkeys(lines)]


def test_pages_have_commands() -> None:
    for tools, least in {("memtoll",): 15, ("sqlite3",): 6, ("python3 -m memtoll",): 10, ("make",): 8}.items():
        assert len(commands(*tools)) >= least, tools
    assert {words[1] for words in commands("memtoll")} == {*TRACING, "report", "symbolize", "explain", "demo"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the recordings that pages speak of, made by hand, and memtoll in its bin/."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "memtoll").symlink_to(MEMTOLL)
    same = dict.fromkeys(("server", "before", "main", "branch"), "heap-blocks")
    for name, scenario in {**same, "after": "mapped-blocks"}.items():
        facts.SCENARIOS[scenario](tmp_path / f"{name}.memtoll").database.close()
    return tmp_path


def run(words: list[str], place: Path) -> str:
    env = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(words, cwd=place, env=env, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, (words, done)
    return done.stdout


@pytest.mark.root
def test_commands_that_trace(place: Path) -> None:
    """1234 and server are a process in a cgroup of ours. report reads what record wrote."""
    (place / "server.memtoll").unlink()
    server = place / "server"
    shutil.copy(workload("calloc_loop"), server)
    (place / "program").write_text(f"#!/bin/sh\nexec {shlex.quote(str(workload('cpu_loop')))} 101\n")
    (place / "program").chmod(0o755)
    shutil.copy(place / "program", place / "program.old")
    with ExitStack() as stack:
        cgroup = make_cgroup(stack)
        command = in_cgroup(cgroup, server, "1048576", "0", "--seconds", "600", "--rest", "5000")
        pid = stack.enter_context(Program(*command)).pid
        names = {"1234": str(pid), "2s": "1s", "10s": "1s"}
        # What a container's name is found by is shown by test_e2e_container.py.
        groups = ("/sys/fs/cgroup/service", "web", "shop/web-1/app", "shop/web-1", "0a1b2c3d")
        names |= dict.fromkeys(groups, str(cgroup))
        for words in commands("memtoll"):
            if words[1] not in TRACING:
                continue
            words[2:2] = ["--runs", "1"] if words[1] == "compare" else []
            printed = run([names.get(word, word) for word in words], place)
            assert words[1] == "record" or "--init" in words or printed, words
    assert "VERDICT" in run(["memtoll", "report", "--full", "server.memtoll"], place)


@pytest.mark.slow
def test_commands_that_read(place: Path) -> None:
    for words in commands("memtoll", "sqlite3"):
        if words[0] == "sqlite3" or words[1] not in TRACING:
            printed = run(words, place)
            # Nothing was lost; or it was written to a file.
            assert printed or " FROM loss" in words[-1] or "-o" in words, words
    # The views of the file itself, nested: seconds, as the page says.
    assert "zero.kernel" in run(["sqlite3", "server.memtoll", "SELECT toll FROM toll"], place)


@contextmanager
def collector() -> Iterator[tuple[str, list[str]]]:
    """The address of a server that takes whatever is sent to it, and the paths that were asked for."""
    taken: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.rfile.read(int(self.headers["Content-Length"]))
            taken.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.slow
def test_commands_of_the_package(place: Path) -> None:
    """One interpreter for all, in the environment that has the extras."""
    for name in ("server", "before", "after"):
        meta = {"host": "web1", "start_realtime_ns": str(1_790_000_000 * facts.S), "start_ns": "0"}
        meta["command_line"] = name
        with closing(sqlite3.connect(place / f"{name}.memtoll")) as database, database:
            database.executemany("INSERT INTO meta VALUES (?, ?)", list(meta.items()))
    (place / "all.py").write_text(
        "import json, sys\n"
        "from memtoll.__main__ import main\n"
        "if __name__ == '__main__':\n"
        "    for words in json.loads(sys.argv[1]):\n"
        "        assert main(words) == 0, words\n"
        "    main(['--help'])\n"
    )
    lines = [words[3:] for words in commands("python3 -m memtoll")]
    made = {words[words.index("-o") + 1] for words in lines if "-o" in words}
    python = extras_environment.python()
    env = {**os.environ, "PYTHONPATH": str(ROOT / "analysis"), "PYTHONDONTWRITEBYTECODE": "1"}
    env["XDG_STATE_HOME"] = str(place / "state")
    with collector() as (url, taken):
        lines = [[url if word == COLLECTOR else word for word in words] for words in lines if words != ["--help"]]
        done = subprocess.run(
            [python, place / "all.py", json.dumps(lines)],
            cwd=place, env=env, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
    assert taken and set(taken) == {"/v1development/profiles"}
    assert done.returncode == 0, done
    assert done.stdout and len(made) >= 4
    assert all((place / name).exists() for name in made)


def test_targets_of_make() -> None:
    """As `make help` lists them; a variable is one that the Makefile asks for."""
    makefile = (ROOT / "Makefile").read_text() + (ROOT / "packaging" / "packaging.mk").read_text()
    listed = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.M))
    for words in commands("make"):
        for word in words[1:]:
            name, _, value = word.partition("=")
            assert re.search(rf"\b{name}\b(?: \?=|\))|ifdef {name}\n", makefile) if value else word in listed, words
            if name == "T" and "/" in value:
                path, _, test = value.partition("::")
                assert f"def {test}(" in (ROOT / path).read_text(), value
            elif name == "T":
                assert [*(ROOT / "userspace" / "tests").glob(f"*/*{value}*")], value


@pytest.mark.root
def test_demo() -> None:
    """make demo prints one screen, and the pages show its words."""
    done = subprocess.run(
        [tool("make"), "-C", ROOT, f"O={MEMTOLL.parent}", "demo"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done
    words = ("ZEROING ", "explain calloc-reuse-memset", "try: memtoll compare --set GLIBC_TUNABLES=", "MEMORY  ")
    assert [word for word in words if word not in done.stdout or word not in README] == []


def test_sections_are_explained(place: Path) -> None:
    headings = set(
        re.findall(
            r"^[A-Z]{4,}(?:'S)?(?: [A-Z]{4,})*", run(["memtoll", "report", "--full", "server.memtoll"], place), re.M
        )
    )
    assert headings >= {"VERDICT", "TOLL", "SITES", "CHECKS"}
    assert headings <= set(re.findall(r"^## (.*)", DOC["report.md"], re.M))


# ---- what the pages name ----


def plain(text: str) -> str:
    """Without what is indented or fenced: commands and what they print."""
    return re.sub(r"^(?: {4}[^\n]*|```.*?^```)$", "", text, flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """As forges make them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    links = re.findall(r"\[[^\]]+\]\(([^)]+)\)", page.read_text())
    for link in links:
        if not link.startswith("https:"):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def test_every_page_is_reached() -> None:
    reached, new = set(), {PAGES[0]}
    while new:
        page = new.pop()
        reached.add(page)
        for link in re.findall(r"\]\(([^)#:]+\.md)", page.read_text()):
            new |= {(page.parent / link).resolve()} - reached
    assert reached == set(PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_named_exist(page: Path) -> None:
    text = page.read_text()
    for path in re.findall(r"`((?:bpf|userspace|analysis|vmlinux|doc|\.ci)/[^`\s]*)`", text):
        path = f"userspace/{path}" if path.startswith("doc/") else path
        assert list(ROOT.glob(path.rstrip("/"))), path
    known = {path.name for folder in ("bpf", "userspace", "analysis") for path in (ROOT / folder).rglob("*.*")}
    for name in re.findall(r"`(\w+\.(?:c|h|sql|py|md))`", text):
        assert name in known or (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_named_exist(page: Path) -> None:
    sources = [*(ROOT / "userspace" / "cli").glob("*.c"), *(ROOT / "analysis" / "memtoll" / "commands").glob("*.py")]
    sources += [*(ROOT / "analysis" / "pytest_memtoll").glob("*.py")]
    sources += [*(ROOT / "userspace" / "tests" / "bench").glob("*.py")]
    code = "\n".join(source.read_text() for source in sources)
    others = {"strict", "cap-add", "perf-basic-prof"}  # of mypy, of docker run, of node
    text = re.sub(r"https:\S+|<!--.*?-->", "", page.read_text())
    for option in set(re.findall(r"(?<![\w-])--([a-z][a-z-]+)", text)) - others:
        assert f'"{option}"' in code or f'"--{option}"' in code, option


def test_lists_are_the_codes() -> None:
    """Tolls, advice, losses and tables."""
    prices = (ROOT / "userspace" / "views" / "prices.sql").read_text()
    tolls = re.findall(r"^\t\(\d+, +'([a-z.]+)', +'[a-z]+', +\d\)", prices, re.M)
    assert sorted(tolls) == sorted(TOLLS)
    for text in (README, DOC["report.md"]):
        assert all(f"| `{toll}` | " in text for toll in tolls)
    advice = dict(line.split(maxsplit=1) for line in memtoll("explain").stdout.splitlines())
    part = DOC["report.md"].partition("## ADVICE")[2].partition("\n## ")[0]
    listed = dict(re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", part, re.M))
    assert len(listed) > 15
    assert listed.items() <= advice.items()
    losses = re.findall(r'LOSS\(LOST_\w+,\s*"(\w+)"', (ROOT / "bpf" / "wire" / "losses.h").read_text())
    for page in DOC.values():
        for name in re.findall(r"loss(?:es)?,? (?:\()?((?:`[a-z_]+`(?:, )?)+)", page):
            assert set(re.findall(r"`(\w+)`", name)) <= set(losses), name
    for pattern in re.findall(r"^\| (`[a-z_*]+`(?:, `[a-z_*]+`)*) \|", DOC["limits.md"], re.M):
        for name in re.findall(r"`([a-z_*]+)`", pattern):
            assert fnmatch.filter(losses, name), name
    views = "".join(path.read_text() for path in (ROOT / "userspace" / "views").glob("*.sql"))
    tables = set(re.findall(r"^CREATE TABLE (\w+)", views, re.M))
    part = DOC["recording.md"].partition("## Tables")[2].partition("## ")[0]
    assert set(re.findall(r"`(\w+)`", part)) == tables


def test_json_is_that_of_the_page(place: Path) -> None:
    report = json.loads(run(["memtoll", "report", "--json", "server.memtoll"], place))
    part = DOC["recording.md"].partition("## JSON")[2]
    named = set(re.findall(r"`([\w.]+)(?:\[\])?`", part))
    assert set(report) - {"format"} <= named
    assert set(report["target"]) | set(report["verdict"]) | set(report["verdict"]["advice"][0]) <= named
    assert set(report["toll"]["zero.kernel"]) <= named
    assert set(report["sites"][0]) <= named
    assert set(report["sites"][0]["allocated_at"][0]) <= named


def test_plain_words() -> None:
    """Words that readers had to learn."""
    for page in PAGES:
        if page.parent.name != "analysis":
            found = re.findall(r"\b(?:told|by turns|likewise|kin|swings?|gifts?)\b", plain(page.read_text()), re.I)
            assert not found, (page, found)
    assert len(README.splitlines()) <= 160
