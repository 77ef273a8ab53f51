# SPDX-License-Identifier: GPL-2.0
"""python3 -m memtoll: the loader's habits."""

from __future__ import annotations

import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

import memtoll
from memtoll import opening
from memtoll.frames import TOLLS
from memtoll.progress import Terminal

import harness
from hostile import endless
from package import ANALYSIS, Cli, environment

COMMANDS = ("diff", "frames", "report")


def test_help_and_version(cli: Cli) -> None:
    done = cli("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert memtoll.__version__ in done.stdout
    done = cli("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for command in COMMANDS:
        assert command in done.stdout
        one = cli(command, "--help")
        assert (one.returncode, one.stderr) == (0, "")
        assert one.stdout.startswith(f"usage: memtoll {command}")


def test_help_waits_for_no_pandas() -> None:
    """It and all that goes with it are most of what an import takes: whoever opens nothing needs none of it."""
    program = (
        "import sys, memtoll, memtoll.__main__; memtoll.__main__.parser(); memtoll.Error;"
        "print(sorted({'pandas', 'numpy'} & {*sys.modules}));"
        "print(callable(memtoll.open), callable(memtoll.dataset), 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), cwd=ANALYSIS, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\nTrue True True\n"
    assert {*memtoll.__all__} <= {*dir(memtoll)}
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = memtoll.nonsense


@pytest.mark.parametrize(
    "words",
    [[], ["nonsense"], ["report"], ["report", "a", "b"], ["report", "--nonsense", "a"], ["report", "a", "--sites"],
     ["report", "a", "--sites", "-1"], ["diff", "a"], ["frames", "--name", "nonsense"]],
)  # fmt: skip
def test_usage(cli: Cli, words: list[str]) -> None:
    done = cli(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("memtoll: ")
    assert "--help" in done.stderr


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no recording")
    for command in (["report"], ["report", "--json"], ["frames"]):
        for path in (tmp_path / "missing", tmp_path, text):
            done = cli(*command, path)
            assert (done.returncode, done.stdout) == (1, ""), done
            assert len(done.stderr.splitlines()) == 1, done.stderr
            assert done.stderr.startswith("memtoll: ")
            assert str(path) in done.stderr


def test_incomplete(cli: Cli, heap_blocks: Path) -> None:
    with closing(sqlite3.connect(heap_blocks)) as database:
        database.execute("DELETE FROM meta WHERE key = 'complete'")
        database.commit()
    done = cli("report", heap_blocks)
    assert (done.returncode, done.stderr) == (0, "")
    assert "INCOMPLETE" in done.stdout
    assert cli("report", heap_blocks, "--incomplete").stdout == done.stdout


@pytest.mark.slow
def test_json_is_that_of_the_loader(cli: Cli, scenario: Path) -> None:
    done = cli("report", scenario, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == harness.memtoll("report", scenario, "--json").stdout
    two = json.loads(cli("report", scenario, "--json", "--sites", "2").stdout)
    assert two == json.loads(harness.memtoll("report", scenario, "--json", "--sites", "2").stdout)


def tables(text: str) -> list[list[str]]:
    """Words of the lines that carry figures: tolls, sites, checks."""
    lines = [line.split() for line in text.splitlines()]
    return [words for words in lines if words and (words[0] in memtoll.frames.TOLLS or words[1:2] == ["%"])]


@pytest.mark.slow
def test_text_has_the_loaders_numbers(cli: Cli, scenario: Path) -> None:
    done = cli("report", scenario)
    assert (done.returncode, done.stderr) == (0, "")
    theirs = harness.memtoll("report", "--full", scenario).stdout
    assert len(tables(done.stdout)) > 12
    assert tables(done.stdout) == tables(theirs)
    for line in done.stdout.splitlines():
        assert len(line) <= 80 or " " not in line.strip(), line  # a setting is not cut


def test_names_do_not_control_the_terminal(cli: Cli, heap_blocks: Path) -> None:
    with closing(sqlite3.connect(heap_blocks)) as database:
        database.execute("UPDATE frame SET function = 'a' || char(27) || '[31m' || char(10) || 'b'")
        database.execute("UPDATE meta SET value = char(27) || ']0;x' WHERE key = 'target_command'")
        database.commit()
    done = cli("report", heap_blocks)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout


def test_frames_lists_all(cli: Cli, heap_blocks: Path) -> None:
    done = cli("frames")
    assert done.returncode == 0
    for frame in memtoll.frames.FRAMES:
        assert f"\n{frame.name}: " in "\n" + done.stdout
        for column in frame.columns:
            assert f"  {column.name} " in done.stdout
    assert "toll (15 rows)" in cli("frames", heap_blocks, "--name", "toll").stdout


def started(*words: str | Path, **options: int) -> subprocess.Popen[str]:
    # A shell ignores SIGINT for what it starts in the background, and so would all that come of it.
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "memtoll", *map(str, words)], env=environment(), text=True, **options
        )
    finally:
        signal.signal(signal.SIGINT, old)


@pytest.mark.slow
def test_closed_pipe(busy: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    process = started("report", busy, "--json", stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGPIPE
    assert err == ""


@pytest.mark.slow
def test_full_device(busy: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "memtoll", "report", str(busy)],
            stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.slow
def test_interrupted(heap_blocks: Path) -> None:
    """In the middle of a query: ended by the signal, without a word and soon."""
    process = started("report", endless(heap_blocks), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:

        def work() -> float:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) / os.sysconf("SC_CLK_TCK")

        def is_open() -> bool:
            with suppress(FileNotFoundError):  # closed since it was listed
                return any(file.resolve() == heap_blocks for file in Path(f"/proc/{process.pid}/fd").iterdir())
            return False

        harness.wait_until(is_open, "the recording to be opened", 120)
        opened = work()
        # It would be ended for its memory after half a second of work.
        harness.wait_until(lambda: work() > opened + 0.2, "some work on it", 120, every=0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGINT
    assert (out, err) == ("", "")


@pytest.mark.slow
def test_interrupt_in_a_notebook(heap_blocks: Path) -> None:
    """As a library it is KeyboardInterrupt, like everywhere in Python."""
    with memtoll.open(endless(heap_blocks)) as rec:
        old = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            with pytest.raises(KeyboardInterrupt):
                _ = rec.verdict
        finally:
            signal.signal(signal.SIGALRM, old)


class Interrupted:
    """As a set of what is allowed, when Ctrl-C comes while that is looked up."""

    def __contains__(self, action: object) -> bool:
        raise KeyboardInterrupt


@pytest.mark.parametrize("what", ["READING", "OUTSIDE"])
def test_interrupt_of_a_statement_that_is_got_ready(
    heap_blocks: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Of what it reads, and of the functions it calls."""
    with memtoll.open(heap_blocks) as rec:
        monkeypatch.setattr(opening, what, Interrupted())
        with pytest.raises(KeyboardInterrupt):
            _ = rec.verdict
        monkeypatch.undo()
        assert rec.verdict.dominant == "zeroing"


def test_progress_only_on_a_terminal(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        shown = Terminal(terminal)
        shown.began = 1.0
        shown.what = "working"
        shown("working", 30, 100)
        text = os.read(master, 1000).decode()
        assert "working 30 %" in text
        assert "\n" not in text
        shown("working", 100, 100)
        assert os.read(master, 1000).decode().endswith("\r")
    os.close(master)
    with (tmp_path / "file").open("w") as file:
        quiet = Terminal(file)
        quiet.began, quiet.what = 1.0, "working"
        quiet("working", 30, 100)
    assert (tmp_path / "file").read_text() == ""


def test_reports_progress(busy: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    with closing(sqlite3.connect(busy)) as database:
        database.execute("DELETE FROM meta WHERE key = 'complete'")
        database.commit()
    with memtoll.open(busy, incomplete=True, progress=lambda *words: seen.append(words)) as rec:
        rec.report  # noqa: B018
        rec.faults  # noqa: B018
    assert {what for what, _, _ in seen} == {"copying", "working out the tolls", "loading fault runs"}
    assert all(0 <= done <= all_ for _, done, all_ in seen)


@pytest.mark.slow
def test_installs(tmp_path: Path) -> None:
    """pip install ./analysis, with this Python's own pandas and pip: whole, and at work away from here."""
    environment_ = tmp_path / "venv"
    pip = ["--without-pip"] if find_spec("pip") else []  # to unpack another one takes as long as all the rest
    subprocess.run(
        [sys.executable, "-m", "venv", "--system-site-packages", *pip, environment_],
        check=True,
        timeout=100,
        capture_output=True,
    )
    python = environment_ / "bin/python"
    source = tmp_path / "analysis"
    subprocess.run(["cp", "-rL", str(ANALYSIS), str(source)], check=True)
    quick = ["--no-deps", "--no-build-isolation", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([python, "-m", "pip", "install", *quick, source], check=True, timeout=100, capture_output=True)
    script = (
        "import memtoll, sys\nrec = memtoll.open(sys.argv[1])\n"
        "print(memtoll.__file__, len(rec.timeline), len(rec.toll))"
    )
    done = subprocess.run(
        [python, "-I", "-c", script, str(source / "tests/recordings/format-1.memtoll")],
        check=True, timeout=60, capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    file, slices, tolls = done.stdout.split()
    assert file.startswith(str(environment_))
    assert int(slices) > 12
    assert int(tolls) == len(TOLLS)
    assert (Path(file).parent / "py.typed").exists()
    done = subprocess.run(
        [environment_ / "bin/memtoll-analysis", "frames", "--name", "toll"],
        check=True, timeout=60, capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.startswith("toll: ") and not (environment_ / "bin/memtoll").exists()
