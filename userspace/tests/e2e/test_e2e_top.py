# SPDX-License-Identifier: GPL-2.0
"""memtoll top: on a terminal (tmux), with its keys and sizes; its lines; and the whole machine against the kernel's
own counts, with a neighbour that pushes another's pages out.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from harness import (
    MEMTOLL,
    MIB,
    PAGE,
    PATIENCE,
    Program,
    end,
    environment,
    hold,
    memtoll,
    report,
    site_line,
    spawn,
    tool,
    wait_until,
    workload,
)
from leftovers import noted
from swapping import in_cgroup, memory_with_swap

pytestmark = pytest.mark.root

BLOCK: Final = 10 * MIB
# What the victim faults beside what was pushed out, and what goes while somebody looks.
AT_THE_END: Final = 16 * 32
WOKEN: Final = r"pagez\.c:\d+ \(\w+\)"


class Screen:
    """A terminal of tmux's, in a server of its own."""

    def __init__(self, folder: Path, command: str, *, columns: int = 80, lines: int = 24, **variables: str) -> None:
        self.socket = str(folder / "tmux")
        words = " ".join(f"{name}={value}" for name, value in variables.items())
        size = ("-x", str(columns), "-y", str(lines))
        self("new-session", "-d", *size, f"{words} {command}; echo over $?; read wait")

    def __call__(self, *words: str) -> str:
        done = subprocess.run(
            [tool("tmux"), "-S", self.socket, "-f", "/dev/null", *words],
            env=environment({"LC_ALL": "C.UTF-8"}),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def text(self) -> str:
        return self("capture-pane", "-p")

    def inks(self) -> str:
        return self("capture-pane", "-p", "-e")

    def keys(self, *keys: str) -> None:
        self("send-keys", *keys)

    def child(self) -> int:
        """memtoll, of the shell that began it."""
        shell = self("list-panes", "-F", "#{pane_pid}").strip()
        (child,) = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        return int(child)

    def shows(self, pattern: str) -> str:
        """The screen, as soon as the pattern is on it."""

        def found() -> str:
            text = self.text()
            return text if re.search(pattern, text) else ""

        try:
            return str(wait_until(found, pattern, PATIENCE, every=0.1))
        except AssertionError as vain:
            raise AssertionError(f"{vain}; on the screen is\n{self.text()}") from None


@contextmanager
def screen(folder: Path, command: str, *, columns: int = 80, lines: int = 24, **variables: str) -> Iterator[Screen]:
    shown = Screen(folder, command, columns=columns, lines=lines, **variables)
    try:
        yield shown
    finally:
        subprocess.run([tool("tmux"), "-S", shown.socket, "kill-server"], check=False, timeout=60)


def lines(text: str) -> list[str]:
    return text.rstrip("\n").splitlines()


def test_screen(tmp_path: Path, out: Path) -> None:
    """A loop of calloc: its process and its line are on top; keys, sizes, a mark; the end is the user's."""
    line = site_line("calloc_loop.c", "calloc")
    with Program(workload("calloc_loop"), str(BLOCK), "1", "--seconds", "120", "--rest", "2000") as loop:
        command = f"{MEMTOLL} top -p {loop.pid} -o {out}"
        with screen(tmp_path, command, LC_ALL="C.UTF-8", NO_COLOR="1") as shown:
            # The terminal may be in the middle of it: all is drawn where the last line is.
            text = shown.shows(r"(?s)zeroing dominates.*q end")
            first, second = lines(text)[:2]
            assert re.match(r"So far: zeroing dominates, \d+ % +pid \d+  \d+ s$", first)
            assert re.match(r"overhead \d+\.\d % of 5 %  losses \S+  interval \d+\.\d s", second)
            assert len(lines(text)) == 24 and max(map(len, lines(text))) <= 80
            assert re.search(rf"^ +{loop.pid} calloc_loop .*%", text, re.MULTILINE)
            shown.shows(rf"\nzero\.libc .*calloc: calloc_loop\.c:{line} \(clear_block\)")
            # Monochrome: reversed, bold, dim and underlined only.
            assert not re.search(r"\x1b\[(?:[\d;]*;)?[34][0-7]", shown.inks())
            shown.keys("o")
            shown.shows(r"TOUCHED AT")
            shown.keys("<")
            shown.shows(r"NAMEv")
            shown.keys(">", ">")
            shown.shows(r"ZEROv")
            shown.keys("?")
            shown.shows(r"filter by name")
            shown.keys("?", "/", "nothing", "Enter")
            assert str(loop.pid) + " calloc_loop" not in shown.shows(r"filter /nothing")
            shown.keys("/", "calloc", "Enter", "p")
            shown.shows(r"filter /calloc  PAUSED")
            shown.keys("p", "t")
            shown.shows(r"SINCE THE START")
            shown.keys("m", "a", "note", "Enter")
            shown.shows(r"marked at \d+\.\d s: anote")
            shown("resize-window", "-x", "132", "-y", "40")
            wait_until(lambda: len(lines(shown.text())) == 40, "as many lines", every=0.1)
            wait_until(lambda: max(map(len, lines(shown.text()))) > 80, "lines as wide", every=0.1)
            shown("resize-window", "-x", "39", "-y", "10")
            shown.shows(r"too small")
            shown("resize-window", "-x", "80", "-y", "24")
            shown.shows(r"calloc_loop")
            with closing(sqlite3.connect(out)) as database:
                wait_until(lambda: database.execute("SELECT note FROM mark").fetchall() == [("anote",)], "the mark")
                ((time, start),) = database.execute("SELECT m.time_ns, MIN(s.start_ns) FROM mark m, slice s")
                assert time > start
            shown.keys("q")
            shown.shows(rf"pid {loop.pid}, \d+ s: zeroing dominates[^\n]*\n(?:.*\n)*.*wrote .*\n+(?:.*\n)*over 0")
            loop.beats()
    assert memtoll("report", str(out)).status == 0


def test_signals_leave_the_terminal_as_it_was(tmp_path: Path) -> None:
    """Of one that is stuck, by its watchdog; and of one whose target has ended."""
    after = "; echo status $?; stty -a"
    with Program(workload("calloc_loop"), str(BLOCK), "1", "--seconds", "120", "--rest", "20000") as loop:
        with screen(tmp_path, f"{MEMTOLL} top -p {loop.pid}{after}") as shown:
            shown.shows("interval")
            assert hold(shown.child())
            os.kill(shown.child(), signal.SIGTERM)
            text = shown.shows(r"over 0")
            assert "did not get on" in text and "status 1" in text
            assert re.search(r"[^-]icanon\b", text) and re.search(r"[^-]echo\b", text), text
        loop.beats()
    with screen(tmp_path, f"{MEMTOLL} top -- true{after}") as shown:
        shown.shows(r"ENDED")
        os.kill(shown.child(), signal.SIGTERM)
        text = shown.shows(r"over 0")
        assert "status 0" in text and re.search(r"[^-]icanon\b", text), text


def test_lines(tmp_path: Path) -> None:
    """Lines, and objects that the schema allows, whatever its name; a command's own output goes where it went."""
    schema = json.loads(memtoll("top", "--schema").stdout)
    loop = f"exec {workload('calloc_loop')} {BLOCK} 1 --seconds 60 --rest 2000 >/dev/null"
    odd = tmp_path / 'odd"\n\x1bname'
    odd.symlink_to("/bin/sh")
    result = memtoll("top", "--json", "--count", "2", "-I", "500ms", "--", str(odd), "-c", loop)
    told = [json.loads(line) for line in lines(result.stdout)]
    assert len(told) == 2
    for line in told:
        jsonschema.validate(line, schema)
    last = told[-1]
    assert last["target"] == 'odd"??name'
    assert last["verdict"]["most"] == "zeroing"
    (process,) = (process for process in last["processes"] if process["name"] == "calloc_loop")
    assert 0 < process["zeroing_s"] <= process["toll_s"] <= process["observed_s"] + 1e-6
    site = next(site for site in last["sites"] if site["pid"] == process["pid"])
    where = f"calloc_loop.c:{site_line('calloc_loop.c', 'calloc')} (clear_block)"
    assert site["toll"] == "zero.libc" and site["allocated_at"].startswith(f"calloc: {where}")
    assert site["bytes"] == pytest.approx(site["count"] * BLOCK, rel=1e-4)


def test_nobody_reads_the_lines(out: Path) -> None:
    """The recording is finished all the same; a disk that is full is a failure."""
    tracer = spawn([MEMTOLL, "top", "--batch", "-o", str(out), "--", "sleep", "600"])
    assert tracer.stdout and tracer.stdout.readline()
    tracer.stdout.close()
    # As its command, which is ended with it.
    assert tracer.wait(timeout=120) == 128 + signal.SIGTERM
    end(tracer)
    assert report(out)["complete"] is True
    with Path("/dev/full").open("w") as full:
        words: list[str | Path] = [MEMTOLL, "top", "--json", "--count", "1"]
        told = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert told.returncode == 1 and "No space left on device" in told.stderr


class Machine:
    """`memtoll top --json` of the whole machine, nothing left out; the sums of its lines."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "machine.json"
        with self.path.open("wb") as out:
            words = ["top", "--json", "-I", "500ms", "--overhead-limit", "none"]
            self.process = spawn([MEMTOLL, *words], stdout=out)
        wait_until(lambda: self.path.read_text().count("\n"), "the first line")

    def end(self) -> list[dict[str, Any]]:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(timeout=60) == 0
        end(self.process)
        return [json.loads(line) for line in lines(self.path.read_text())]


def on_swap(pid: int) -> int:
    fields = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines())
    return next(int(words[1]) for words in fields if words[0] == "Swap:") * 1024 // PAGE


def group(stack: ExitStack, parent: Path, name: str) -> Path:
    made = parent / name
    if (parent / "cgroup.subtree_control").exists():
        (parent / "cgroup.subtree_control").write_text("+memory")
    stack.enter_context(noted("cgroup", made))
    made.mkdir()
    return made


@pytest.mark.machine
def test_whole_machine(tmp_path: Path) -> None:
    """A neighbour pushes out who idles; that one waits when it wakes. And one that has 7919 pages cleared."""
    with ExitStack() as stack:
        both = stack.enter_context(memory_with_swap("file"))
        idle, busy = (group(stack, both, name) for name in ("idle", "neighbour"))
        machine = Machine(tmp_path)
        (tmp_path / "whole").mkdir()
        # Other tests' groups push each other out, too: there is room for all of them.
        whole = stack.enter_context(
            screen(tmp_path / "whole", f"{MEMTOLL} top", columns=160, lines=60, LC_ALL="C.UTF-8")
        )
        whole.shows(r"whole machine")
        whole.keys("t")
        toucher = json.loads(
            subprocess.run(
                [workload("touch"), "7919", "small", "w"], check=True, capture_output=True, text=True, timeout=60
            ).stdout.splitlines()[-1]
        )
        with Program(*in_cgroup(idle, workload("pagez"), "6", "1", "--hold")) as victim:
            before = on_swap(victim.pid)
            subprocess.run(in_cgroup(busy, workload("pagez"), "8", "1"), check=True, timeout=60, capture_output=True)
            pushed = on_swap(victim.pid) - before
            assert pushed > 0
            # Where it goes on is where it waits; its screen stays when it has ended.
            with screen(tmp_path, f"{MEMTOLL} top -p {victim.pid}", LC_ALL="C.UTF-8") as shown:
                shown.shows(r"overhead")
                victim.go()
                witness = victim.last()
                shown.shows(r"^So far: swap dominates")
                shown.keys("t", "o")
                shown.shows(rf"\n +{victim.pid} pagez .*%")
                shown.shows(rf"\nswap\.in .*{WOKEN}")
                shown.shows(r"ENDED")
                shown.keys("q")
                # The whole machine's memtoll holds no target.
                assert "another memtoll" not in shown.shows(r"over 0")
        # The matrix, since the start, names the neighbour.
        whole.shows(r"\nPUSHED BY .*(\n.*)*\n\S*/neighbour +\d.* \d+m?s .*/idle")
        whole.keys("q")
        whole.shows(r"over 0")
        told = machine.end()
    schema = json.loads(memtoll("top", "--schema").stdout)
    # No time is left out between two, nor what memtoll does in it.
    assert sum(line["interval_s"] for line in told) == pytest.approx(told[-1]["elapsed_s"], abs=1e-3)
    cells: Counter[tuple[str, str]] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    waited = 0.0
    sums: dict[int, Counter[str]] = {}
    for line in told:
        jsonschema.validate(line, schema)
        assert line["kind"] == "machine" and not line["estimated"] and not line["losses"]
        for process in line["processes"]:
            row = sums.setdefault(process["pid"], Counter())
            row.update({name: value for name, value in process.items() if not isinstance(value, str)})
        for cell in line["pushes"]:
            names = tuple(Path(cell[name].removesuffix(" (kswapd)")).name for name in ("pusher", "victim"))
            cells[names[0], names[1]] += cell["swap_pages"]
            waited += cell["waited_s"] if names == ("neighbour", "idle") else 0
            if cell["pusher"] != cell["victim"]:
                pairs[cell["pusher"], cell["victim"]] += cell["waited_s"]
    assert any(p["name"] == "touch" for line in told for p in line["processes"] if p["pid"] == toucher["pid"])
    assert 7919 <= sums[toucher["pid"]]["zeroed_bytes"] / PAGE <= toucher["minflt"], toucher
    # Clean pages that are on swap still need no writing: they are no part of it.
    assert cells["neighbour", "idle"] == pytest.approx(pushed, abs=AT_THE_END)
    assert cells["idle", "neighbour"] <= AT_THE_END
    # It writes its line, and ends.
    counted = sums[victim.pid]["swap_faults"] + sums[victim.pid]["file_faults"]
    assert witness["majflt"] <= counted <= witness["majflt"] + 16
    assert sums[victim.pid]["swap_faults"] >= 0.9 * counted > 0
    assert waited > 0
    assert sums[victim.pid]["waited_s"] > 0
    # Those who waited longest: of other tests' groups some may have.
    worst, longest = max(pairs.items(), key=lambda pair: pair[1])
    assert longest >= waited
    by, of = (re.escape(path if path == "/" else path.rsplit("/", 1)[-1]) for path in worst)
    sentence = re.fullmatch(rf"{by} pushes out {of}, \d+ pages, waited (.*) s", told[-1]["verdict"]["sentence"])
    assert sentence, (told[-1]["verdict"], pairs)
    assert float(sentence[1]) == pytest.approx(longest, abs=0.06)
