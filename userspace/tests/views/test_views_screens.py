# SPDX-License-Identifier: GPL-2.0
"""The first screen of twelve kinds of recordings, 80 columns by 24 lines: the verdict and the advice are on it.

Kept in golden/, as screen-NAME.txt. After a wanted change of the text:

    MEMTOLL_ACCEPT=1 python3 -m pytest views/test_views_screens.py
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import facts
from facts import MIB, MS, PAGE, US, Facts, S, finished
from golden import is_golden
from harness import MEMTOLL, ROOT, memtoll, tool

COLUMNS, LINES = 80, 24
EXAMPLES = ROOT / "analysis" / "memtoll" / "examples"
MEMSET = ("__memset_avx2_unaligned_erms", "", 0)
ESCAPE = re.compile(rb"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>])")


def begun(path: Path, comm: str, cpu_ns: int = S, **counted: int) -> Facts:
    """counted: minor and major faults, as the kernel counts them."""
    made = Facts(path)
    made.prices()
    made.slice()
    made.process(comm=comm)
    made.cpu(cpu_ns, **counted)
    return made


def python(path: Path) -> None:
    """A buffer of 10 MiB for each record, cleared by the interpreter."""
    made = begun(path, "python3")
    made.allocator()
    line = ("make_buffer", "/srv/buffers.py", 10), ("receive", "/srv/buffers.py", 16), ("main", "/srv/buffers.py", 23)
    inside = ("PyByteArray_Resize", "/build/Objects/bytearrayobject.c", 233)
    site, touched = made.stack(("malloc", "", 0), inside, *line), made.stack(MEMSET, inside, *line)
    kind = "UPDATE frame SET {} WHERE file LIKE '{}'"
    made.database.execute(kind.format("kind = 'python', module = ''", "%.py"))
    made.database.execute(kind.format("module = '/usr/bin/python3.11'", "%bytearrayobject.c"))
    made.call("malloc", site, 503, bytes=503 * 10 * MIB, cpu_ns=503 * 40 * US)
    made.block("malloc", site, 503, 503 * 10 * MIB)
    made.samples("memset", 82, touched)
    made.samples("user", 13, touched)
    finished(made, "/usr/bin/python3 /srv/buffers.py").database.close()


def snapshot(path: Path) -> None:
    """A store that forks to save itself: what is written meanwhile is copied."""
    made = begun(path, "redis-server", minor=200_003)
    made.allocator("jemalloc", dynamic=None)
    made.process(43, comm="redis-server", role="child", parent_pid=42)
    touched = made.stack(
        ("dictReplace", "/src/dict.c", 402), ("setKey", "/src/db.c", 240), ("main", "/src/server.c", 7)
    )
    made.fault("cow", 200_003, 3 * US, touched_stack=touched)
    finished(made, "redis-server *:6379").database.close()


def file_thrash(path: Path) -> None:
    """163 MiB of a mapped file four times over, of which 82 may stay."""
    pages = 163 * MIB // PAGE
    made = begun(path, "reader", minor=pages // 4, major=pages // 4_000)
    made.meta(memory_bytes=str(16_384 * MIB))
    made.memory_cgroup(82 * MIB, usage_bytes=82 * MIB, file_bytes=80 * MIB)
    touched = made.stack(("use_page", "/src/walk.c", 23), ("main", "/src/walk.c", 43))
    where = {"area": "file", "area_name": "/srv/data", "touched_stack": touched}
    made.fault("file_minor", pages // 4, 80 * US, pages=4 * pages, **where)
    made.fault("file_again_major", pages // 4_000, 90 * US, blocked_ns=100 * MS, **where)
    made.page_fill(pages, 3 * pages)
    made.reuse("cache", 4 * pages, pages, {pages - 1: 3 * pages})
    made.swap("reclaim_memcg", 3 * pages, count=500, cpu_ns=50 * MS)
    finished(made, "./reader /srv/data 4").database.close()


def idle(path: Path) -> None:
    """A server that waits."""
    finished(begun(path, "sleeper", 300 * US), "./sleeper").database.close()


def lossy(path: Path) -> None:
    """So much lost that the figures are lower bounds."""
    made = facts.heap_blocks(path)
    made.row("loss_kind", name="ring_faults", meaning="faults not recorded", remedy="raise --buffer")
    made.row("loss", slice=1, name="ring_faults", count=317_003)
    made.row("loss_kind", name="calls_lost", meaning="calls not recorded", remedy="raise --buffer")
    made.row("loss", slice=1, name="calls_lost", count=100_003)
    made.save()
    made.database.close()


def processes(path: Path) -> None:
    """Workers that touch fresh memory, 97 of them."""
    made = begun(path, "server", 10 * MS)
    touched = made.stack(("serve", "/src/worker.c", 42), ("main", "/src/worker.c", 7))
    for pid in range(43, 139):
        made.process(pid, comm="worker", role="child", parent_pid=42)
        made.cpu(20 * MS, pid=pid, minor=3_001)
        made.fault("zero", 3_001, 4 * US, pid=pid, touched_stack=touched)
    finished(made, "./server --workers 96").database.close()


def example(name: str) -> Callable[[Path], None]:
    return lambda path: (shutil.copy(EXAMPLES / f"{name}.memtoll", path), None)[1]


def scenario(name: str) -> Callable[[Path], None]:
    return lambda path: facts.SCENARIOS[name](path).database.close()


# Whether there is something to do.
SCREENS: Final[dict[str, tuple[Callable[[Path], None], bool]]] = {
    "zeroing": (example("zeroing"), True),
    "swap": (example("swap"), True),
    "healthy": (example("healthy"), False),
    "naive-calloc": (scenario("naive-calloc"), True),
    "mapped-blocks": (scenario("mapped-blocks"), True),
    "touched-churn": (scenario("touched-churn"), True),
    "file-thrash": (file_thrash, True),
    "python": (python, True),
    "snapshot": (snapshot, True),
    "idle": (idle, False),
    "lossy": (lossy, True),
    "processes": (processes, True),
}


def rows_of(text: str) -> int:
    """Lines of a terminal that it takes: a command to be pasted is not broken."""
    return sum(max(1, -(-len(line) // COLUMNS)) for line in text.splitlines())


@pytest.mark.parametrize("name", SCREENS)
def test_first_screen(name: str, tmp_path: Path) -> None:
    make, remedy = SCREENS[name]
    make(tmp_path / "a.memtoll")
    shown = memtoll("report", "a.memtoll", cwd=tmp_path)
    assert (shown.status, shown.stderr) == (0, "")
    assert rows_of(shown.stdout) <= LINES, "with the prompt it is more than a screen"
    assert re.search(r"^(?:[A-Z]+ \d+ % \(|none|[a-z]+ \d+ %)", shown.stdout, re.M) or name == "idle", "no shares"
    assert ("\nDO   " in shown.stdout) == remedy
    is_golden(f"screen-{name}.txt", shown.stdout)


def on_terminal(words: list[str | Path], cwd: Path, until: str) -> list[str]:
    """What stands on a terminal of 80 x 24 after the command has written that, or has ended; scrolled, if it did."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "vt100", "LESS": "", "NO_COLOR": "1", "MEMTOLL_PAGER": tool("less")}
    with subprocess.Popen(words, cwd=cwd, env=environment, stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        said = b""
        end = time.monotonic() + 60
        while time.monotonic() < end and until.encode() not in ESCAPE.sub(b"", said):
            if not select.select([master], [], [], 0.2)[0]:
                if process.poll() is not None:
                    break
                continue
            try:
                said += os.read(master, 65536)
            except OSError:  # it has ended
                break
        if process.poll() is None:
            os.write(master, b"q")
        process.wait(timeout=60)
    os.close(master)
    text = ESCAPE.sub(b"", said).decode(errors="replace").replace("\r\n", "\n").replace("\r", "")
    lines = [line[at : at + COLUMNS] for line in text.split("\n") for at in range(0, max(1, len(line)), COLUMNS)]
    return lines[-LINES:]


@pytest.mark.parametrize("name", ["zeroing", "swap", "lossy"])
def test_on_a_terminal(name: str, tmp_path: Path) -> None:
    """Nothing of it has scrolled off when the prompt is there again."""
    SCREENS[name][0](tmp_path / "a.memtoll")
    screen = on_terminal([MEMTOLL, "report", "a.memtoll"], tmp_path, "\0never")
    shares = next(line for line in screen if re.match(r"[A-Z]+ \d+ % \(", line))
    remedy = next(line for line in screen if line.startswith("DO   "))
    assert screen.index(shares) < screen.index(remedy)
    assert any(line.startswith("more: ") for line in screen)


def test_first_screen_of_the_pager(tmp_path: Path) -> None:
    """The whole report: the pager waits where the verdict and the advice can be read."""
    SCREENS["swap"][0](tmp_path / "a.memtoll")
    screen = on_terminal([MEMTOLL, "report", "--full", "a.memtoll"], tmp_path, "\n:")
    text = "\n".join(screen)
    assert screen[-1].startswith(":"), "the pager does not wait"
    assert "VERDICT" in text and "Swap traffic takes 98 %" in text
    assert "ADVICE swap-in" in text and "161 MiB" in text
