# SPDX-License-Identifier: GPL-2.0
"""The notebooks, top to bottom, on recordings that are made here with the commands they show.

Each notebook is a text for people, so the commands and the program in it are run as they stand, but what runs there
for some seconds makes so many calls. Its figures are asked for in one more cell at its end and held against what the
traced programs counted.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from nbclient.client import NotebookClient

import harness
from harness import MIB, PAGE
from package import ANALYSIS, environment
from swapping import memory_with_swap, vmstat

# Half of it has types.
FORMAT: Any = nbformat
NOTEBOOKS = ANALYSIS / "notebooks"
NAMES = ("01_tour", "02_zeroing", "03_access_pattern", "04_latency", "05_comparison")

# Reads the examples of the package; the others make their recordings.
FIRST = "00_first_look"

CELL_SECONDS = 240
RECORD_SECONDS = 240
TEN = 10 * MIB
TIDY = {"GLIBC_TUNABLES": "glibc.malloc.mxfast=0"}
# Pages a program touches while it starts, the shell before it included.
START_PAGES = 1500


def notebook(name: str) -> Any:
    return FORMAT.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)


def texts(nb: Any, kind: str) -> list[str]:
    return [str(cell.source) for cell in nb.cells if cell.cell_type == kind]


def blocks(nb: Any, language: str) -> list[str]:
    """Fenced blocks of a language in its text."""
    return [
        block
        for text in texts(nb, "markdown")
        for block in re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def setup_of(nb: Any) -> str:
    return texts(nb, "code")[0]


@dataclass
class Run:
    """An executed notebook."""

    nb: Any
    figures: dict[str, Any]

    @property
    def shown(self) -> str:
        """All text that its cells put out."""
        found = []
        for cell in self.nb.cells:
            for output in cell.get("outputs", ()):
                data = output.get("data", {})
                found += [output.get("text", ""), data.get("text/plain", ""), data.get("text/html", "")]
        return "\n".join(found)

    @property
    def pictures(self) -> list[str]:
        """PNG files, in base64."""
        outputs = [output for cell in self.nb.cells for output in cell.get("outputs", ())]
        return [output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})]


def start(nb: Any, recordings: Path, work: Path) -> None:
    """Run all cells, in a kernel that listens on a socket file only and writes nowhere but in work."""
    env = environment() | {
        "HOME": str(work),
        "IPYTHONDIR": str(work / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(work / "runtime"),
        "MPLCONFIGDIR": str(work / "matplotlib"),
        "MEMTOLL_RECORDINGS": str(recordings),
        # Else the kernel's debugger complains of frozen modules.
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    client = NotebookClient(
        nb, timeout=CELL_SECONDS, kernel_name="python3", resources={"metadata": {"path": str(work)}}
    )
    manager = client.create_kernel_manager()
    manager.transport = "ipc"
    manager.ip = str(work / "kernel")
    client.execute(env=env)


def execute(name: str, recordings: Path, work: Path, wanted: Mapping[str, str]) -> Run:
    """Run a notebook; wanted: figures by name, as expressions of what it leaves behind."""
    nb = notebook(name)
    count = len(nb.cells)
    asked = ", ".join(f"{key!r}: {expression}" for key, expression in wanted.items())
    nb.cells.append(FORMAT.v4.new_code_cell(f"import json\nprint(json.dumps({{{asked}}}, default=float))"))
    start(nb, recordings, work)
    for cell in nb.cells:
        for output in cell.get("outputs", ()):
            assert output.output_type != "error", output
            assert output.get("name") != "stderr", output.text
    figures = json.loads(nb.cells.pop().outputs[0].text)
    assert len(nb.cells) == count
    keep = os.environ.get("MEMTOLL_KEEP_NOTEBOOKS")
    if keep:
        FORMAT.write(nb, Path(keep) / f"{name}.ipynb")
    return Run(nb, figures)


def counted(loop: re.Match[str]) -> str:
    """As many calls as clear 3 GB, instead of some seconds of them."""
    return f"{loop[1]} {3_220_000_000 // int(loop[1])} {loop[2]}"


@dataclass
class Place:
    """Where the recordings of a test are, and where its kernel works."""

    recordings: Path
    work: Path

    def record(self, name: str, **variables: str | Path) -> list[dict[str, Any]]:
        """Do what the notebook says; the lines of JSON that the traced programs printed."""
        nb = notebook(name)
        for source in blocks(nb, "c"):
            (self.recordings / "deferred.c").write_text(source)
        (script,) = blocks(nb, "sh")
        script = re.sub(r"(\d+) 0 (.*?)--seconds \d+", counted, script)
        env = {
            "MEMTOLL_RECORDINGS": str(self.recordings),
            "WORKLOADS": str(harness.WORKLOADS),
            "PATH": f"{harness.MEMTOLL.parent}:{os.environ['PATH']}",
        } | {key: str(value) for key, value in variables.items()}
        process = harness.spawn(["sh", "-eu", "-c", script], env, cwd=harness.ROOT)
        result = harness.finish(process, RECORD_SECONDS)
        assert result.status == 0, result
        for path in self.recordings.glob("*.memtoll"):
            assert harness.integrity(path) == "ok"
        return result.witness


@pytest.fixture
def place(tmp_path: Path) -> Place:
    # Makes its list of fonts, once for a user, and says so on stderr where that takes long.
    importlib.import_module("matplotlib.font_manager")
    made = Place(tmp_path / "recordings", tmp_path / "work")
    made.recordings.mkdir()
    made.work.mkdir()
    return made


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """80 MiB and a swap file."""
    with memory_with_swap("file") as cgroup:
        yield cgroup


# ---- as they are in the repository


def test_all_are_tested() -> None:
    assert sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")) == sorted([FIRST, *NAMES])


def words_of(nb: Any) -> list[str]:
    """What its cells put out as text, a line for each; of a verdict what dominates: its words change with its views."""
    found = []
    for cell in nb.cells:
        for output in cell.get("outputs", ()):
            text = output.get("text", "") or output.get("data", {}).get("text/plain", "")
            dominant = re.match(r"\{'dominant': '\w+'", text)
            found.append(dominant[0] if dominant else " ".join(text.split()))
    return found


@pytest.mark.slow
def test_first_look_shows_what_is_stored_in_it(tmp_path: Path) -> None:
    """It reads what comes with the package, so that its outputs can be kept, and are those of today.

    After a wanted change: MEMTOLL_ACCEPT=1 python3 -m pytest analysis/tests/test_notebooks.py -k first_look
    """
    stored = notebook(FIRST)
    FORMAT.validate(stored)
    assert (
        sum("image/png" in output.get("data", {}) for cell in stored.cells for output in cell.get("outputs", ())) == 3
    )
    nb = notebook(FIRST)
    start(nb, tmp_path, tmp_path)
    for cell in nb.cells:
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            assert output.output_type != "error", output
            output.get("metadata", {}).clear()
    nb.metadata = stored.metadata
    if os.environ.get("MEMTOLL_ACCEPT"):
        FORMAT.write(nb, NOTEBOOKS / f"{FIRST}.ipynb")
        stored = notebook(FIRST)
    assert words_of(nb) == words_of(stored)
    assert "swap" in "".join(words_of(stored)) and "calloc" in str(stored)
    assert "/work/" not in str(stored) and "/tmp/" not in str(stored) and "/home/" not in str(stored)


@pytest.mark.parametrize("name", NAMES)
def test_stored_without_outputs(name: str) -> None:
    nb = notebook(name)
    FORMAT.validate(nb)
    for cell in nb.cells:
        assert dict(cell.metadata) == {}
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
    assert sorted(nb.metadata) == ["kernelspec", "language_info"]
    assert sorted(nb.metadata.language_info) == ["name"], "no version of whoever saved it last"


@pytest.mark.parametrize("name", NAMES)
def test_says_how_its_recordings_are_made(name: str) -> None:
    """Each notebook begins alike, and reads no recording that its commands do not make."""
    nb = notebook(name)
    assert setup_of(nb) == setup_of(notebook(NAMES[0]))
    (script,) = blocks(nb, "sh")
    subprocess.run(["sh", "-n", "-c", script], check=True, timeout=10)
    assert texts(nb, "markdown")[0].startswith("# ") and "MEMTOLL_RECORDINGS" in texts(nb, "markdown")[0]


def test_clear_message_without_recordings(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells are Python, and need no kernel for that."""
    monkeypatch.setenv("MEMTOLL_RECORDINGS", str(place.recordings))
    cells = "\n".join(texts(notebook("01_tour"), "code"))
    shown = pd.option_context("display.max_columns", None, "display.max_colwidth", 80)  # as they set them
    with shown, pytest.raises(FileNotFoundError) as caught:
        exec(cells, {})
    last = str(caught.value)
    for part in (str(place.recordings / "tour.memtoll"), "MEMTOLL_RECORDINGS", "make it"):
        assert part in last, last


# ---- on real recordings


@pytest.mark.root
@pytest.mark.machine
@pytest.mark.slow
def test_tour(place: Place) -> None:
    """Alone: the kernel has one count of what is swapped, for the whole machine."""
    done = [line for line in place.record("01_tour") if "loop_cpu_ns" in line]
    assert len(done) == 2
    first, second = (line["calls"] for line in done)
    run = execute(
        "01_tour",
        place.recordings,
        place.work,
        {
            "libc_bytes": "rec.toll.loc['zero.libc', 'bytes']",
            "kernel_pages": "rec.toll.loc['zero.kernel', 'pages']",
            "dominant": "rec.verdict.dominant",
            "shares": "shares",
            # What the probes take is part of the workload's own time: more, the busier the machine.
            "taken": "float((rec.processes['observed_s'] + rec.processes['overhead_s']).sum())",
            "processes": "rec.processes['observed_s'].nlargest(2).index.tolist()",
            "largest": f"[str(rec.processes.loc[pid, 'largest_toll']) for pid in {[line['pid'] for line in done]}]",
            "failed": "rec.checks[~rec.checks['ok'].astype(bool)].reset_index().astype(str).values.tolist()",
            "losses": "rec.losses.loc[rec.losses['count'] > 0, 'count'].to_dict()",
            "faults": "int(rec.processes['minor_faults'].sum())",
        },
    )
    figures = run.figures
    assert figures["dominant"] == "zeroing"
    assert figures["libc_bytes"] == pytest.approx((first - 2) * TEN, rel=0.01)
    assert figures["kernel_pages"] == pytest.approx(second * 100 * MIB / PAGE + TEN / PAGE, rel=0.01, abs=START_PAGES)
    assert figures["shares"] == pytest.approx(1, abs=0.001)
    assert set(figures["processes"]) == {line["pid"] for line in done}
    assert figures["largest"] == ["zero.libc", "zero.kernel"]
    assert figures["failed"] == [], figures["losses"]
    assert figures["faults"] >= sum(line["minflt"] for line in done)
    # The program's clock stands still while it sleeps, as in a fault on memory that a virtual machine's host has not
    # made yet, and what the probes take is an estimate: of the size of the one and of all of its time.
    lived = harness.query(place.recordings / "tour.memtoll", "SELECT pid, end_ns - start_ns FROM process")
    lived_ns = sum(ns for pid, ns in lived if pid in {line["pid"] for line in done})
    assert 0.5 * sum(line["cpu_ns"] for line in done) < figures["taken"] * 1e9 < 2 * lived_ns
    line = harness.site_line("calloc_loop.c", "calloc")
    assert f"calloc_loop.c:{line} (clear_block)" in run.shown
    assert len(run.pictures) == 3


@pytest.mark.root
@pytest.mark.slow
def test_zeroing(place: Place) -> None:
    calls, received = 101, 1009
    done = place.record("02_zeroing")
    assert [line["calls"] for line in done] == [calls] * 4
    run = execute(
        "02_zeroing",
        place.recordings,
        place.work,
        {
            "sizes": "sizes.T[['calls', 'size_bytes', 'own_mappings', 'cleared_MiB', 'faults']].values.tolist()",
            "tipping": "tipping.T[['calls', 'size_bytes', 'own_mappings', 'cleared_MiB']].values.tolist()",
            "dominant": "[*sizes.loc['dominant'], *tipping.loc['dominant']]",
            "twice": "ledger.loc['bytes_twice', '10 MiB']",
            "never": "[*ledger.loc['bytes_never_used']]",
            "cleared": "[cleared['count'].sum(), cleared['bytes'].sum()]",
            "chain": "[(row.kind, row.function, row.place) for row in chain.itertuples()]",
            "kept": "kept.toll.loc['zero.libc', 'bytes']",
            "unreadable": "int(cffi.losses.loc['python_unreadable', 'count'])",
            # What it waits for at its start, on a disk, is the machine's.
            "python": "cffi.families['share'].drop('file', errors='ignore').idxmax()",
        },
    )
    figures = run.figures
    ten, hundred = figures["sizes"]
    # The first block is a mapping, for the second one the heap grows; all others are cleared.
    assert ten[:3] == [calls, TEN, 1]
    assert ten[3] * calls == pytest.approx(10 * (calls - 2), abs=1)
    assert hundred[:3] == [calls, 100 * MIB, calls]
    assert hundred[3] < 0.01
    # The kernel counted the faults too: those of the loop and those of the program's start.
    assert ten[4] == pytest.approx(done[0]["minflt"] / calls, rel=0.1)
    last, first = figures["tipping"]
    assert last[:3] == [calls, 33550312, 1]
    assert last[3] * calls * MIB == pytest.approx(33550312 * (calls - 2), abs=MIB)
    assert first[:3] == [calls, 33550313, calls] and first[3] < 0.01
    # What dominates the others, which take a few ms, their start among them, is by chance: nothing is cleared there.
    assert figures["dominant"][0] == figures["dominant"][2] == "zeroing"
    assert figures["twice"] == pytest.approx(TEN, rel=0.05)
    assert figures["never"] == [pytest.approx(TEN, rel=0.01), pytest.approx(calls * 100 * MIB, rel=0.01)]
    # Casebook 3: the buffers, the line of Python that asks for them, and cffi below it.
    assert figures["cleared"][0] == pytest.approx(received - 1, abs=1)
    assert figures["cleared"][1] == pytest.approx((received - 2) * TEN, rel=0.01)
    assert figures["kept"] < 0.01 * figures["cleared"][1]
    assert figures["python"] == "zeroing"
    chain = figures["chain"]
    assert chain[0][:2] == ["native", "calloc"]
    assert any("_cffi_backend" in place for kind, _, place in chain if kind == "native")
    named = [number for number, row in enumerate(chain) if row[:2] == ["python", "receive"]]
    # Beside others' work it may have ended before its names were read, which is said.
    assert len(named) == 1 or (not named and figures["unreadable"] > 0)
    for receive in named:
        assert "receive.py:" in chain[receive][2]
        assert all("_cffi_backend" not in row[2] for row in chain[receive:])
    assert "mmap_threshold" in run.shown
    assert len(run.pictures) == 1


@pytest.mark.root
@pytest.mark.machine
@pytest.mark.slow
def test_access_pattern(place: Place, small_memory: Path) -> None:
    before = vmstat()
    done = place.record("03_access_pattern", CGROUP=small_memory)
    after = vmstat()
    assert len(Path("/proc/swaps").read_text().splitlines()) == 2, "others use swap on this machine just now"
    assert [(line["chunks"], line["passes"]) for line in done] == [(80, 1), (20, 4), (2, 200)]
    run = execute(
        "03_access_pattern",
        place.recordings,
        place.work,
        {
            "access": "access.drop(columns='share').values.tolist()",
            "returns": "returns",
            "swapped": "swapped[['count', 'pages']].sum().tolist()",
            "major": "int(swapped.loc['swap_major', 'count'])",
            "limit": "memory['limit_bytes']",
            "fits": "memory['fits_bytes']",
            "swapped_in": "sum(int(rec.toll.loc['swap.in', 'pages']) for rec in runs.values())",
            "pushed_out": "sum(int(rec.toll.loc['swap.out', 'pages']) for rec in runs.values())",
        },
    )
    figures = run.figures
    columns = ("first", "out", "back", "returns", "pattern", "observed", "dominant")
    a, b, c = (dict(zip(columns, row, strict=True)) for row in figures["access"])
    pages = [line["pages"] for line in done]
    assert [row["first"] for row in (a, b, c)] == [pytest.approx(number, rel=0.01) for number in pages]
    assert [row["pattern"] for row in (a, b, c)] == ["one-pass sweep", "cyclic sweep", "fits"]
    assert (a["dominant"], b["dominant"]) == ("swap", "swap") and c["dominant"] != "swap"
    assert b["returns"] == pytest.approx(3.0, rel=0.01) and figures["returns"] == pytest.approx(3.0, rel=0.01)
    assert b["back"] == pytest.approx(3 * pages[1], rel=0.01)
    assert a["back"] < 0.005 * a["out"]
    assert c["back"] == c["out"] == 0
    # The kernel's own count of the machine: what is read ahead and dropped before its use comes once more.
    assert a["back"] + b["back"] <= figures["swapped_in"] <= 1.01 * (after["pswpin"] - before["pswpin"])
    assert figures["pushed_out"] == pytest.approx(after["pswpout"] - before["pswpout"], rel=0.1)
    assert figures["swapped"][0] == pytest.approx(b["back"], rel=0.01)
    assert figures["major"] == pytest.approx(done[1]["majflt"], rel=0.01)
    assert figures["major"] == pytest.approx(b["back"] / 8, rel=0.15), "what the text says of read-ahead"
    assert figures["limit"] == 80 * MIB
    # An upper bound: pages on their way to a slow disk are charged to the group and resident nowhere.
    assert 0.98 * 160 * MIB <= figures["fits"] <= 1.15 * 160 * MIB
    assert "came back 3.0 times" in run.shown and "3.0 times each" in run.shown
    assert len(run.pictures) == 4


def late_call(place: Place) -> tuple[list[dict[str, Any]], Run]:
    for path in place.recordings.glob("*.memtoll"):
        path.unlink()
    done = place.record("04_latency")
    run = execute(
        "04_latency",
        place.recordings,
        place.work,
        {
            "late": "[late['count']]",
            "usual": "[usual['count']]",
            "first": "list(sites.index[0])",
            "inside": "inside.iloc[0].tolist()",
            "outlier": "[outlier['call'], outlier['cause'], int(outlier['frees'])]",
            "quantiles": "[int(rec.latencies.loc['malloc', 'count']), int(rec.latency['count'].sum()),"
            " int(rec.latencies['count'].sum())]",
        },
    )
    return done, run


@pytest.mark.root
@pytest.mark.slow
def test_latency(place: Place) -> None:
    """Where others had the processor for most of the one call, as its recording says, it tells nothing: again."""
    calls = 500009
    for _ in range(3):
        done, run = late_call(place)
        if run.figures["outlier"][1] != "preempted":
            break
    assert [line["calls"] for line in done] == [calls] * 2
    figures = run.figures
    assert figures["late"][0] == 1
    assert figures["usual"][0] == calls
    assert figures["first"][0] == "malloc" and "(late)" in figures["first"][1]
    assert figures["inside"] == [1, 1024, 0, 0]
    call, cause, frees = figures["outlier"]
    assert (call, cause, frees) == ("malloc", "consolidation", calls)
    mallocs, single, together = figures["quantiles"]
    assert mallocs > calls and single == together
    assert len(run.pictures) == 1


@pytest.mark.root
@pytest.mark.slow
def test_comparison(place: Place) -> None:
    done = [line["calls"] for line in place.record("05_comparison") if "loop_cpu_ns" in line]
    assert len(done) == 4
    run = execute(
        "05_comparison",
        place.recordings,
        place.work,
        {
            "work": "work.values.tolist()",
            "libc": "untouched.toll.loc['zero.libc', ['after', 'difference']].tolist()",
            "bytes": "cleared[['before', 'after']].tolist()",
            "faults": "faults[['before', 'after']].tolist()",
        },
    )
    figures = run.figures
    assert figures["work"] == [done[:2], done[2:]]
    # Whether that is proved with two runs of each is the machine's affair, the sign is not.
    after, difference = figures["libc"]
    assert after == 0 and difference < 0
    assert figures["bytes"] == [pytest.approx(TEN, rel=0.01), 0]
    assert figures["faults"][0] < 0.05 * TEN / PAGE
    assert figures["faults"][1] == pytest.approx(TEN / PAGE, rel=0.02)
    assert len(run.pictures) == 2
