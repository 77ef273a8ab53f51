# SPDX-License-Identifier: GPL-2.0
"""The profile, as `go tool pprof` reads it."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import memtoll
from memtoll.export import export

from facts import Facts, S

GO_CACHE = Path.home() / ".cache" / "go-build"


def output(words: list[str], home: Path, **variables: str) -> str:
    """The time limit is test_extras.py's: on a new machine go compiles pprof first, for minutes beside others."""
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"} | variables
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def program() -> str:
    """What go tool pprof starts: to find it takes go many times as long as pprof takes to print."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
    assert go, "go is not installed"
    with TemporaryDirectory() as home:
        return output(
            [go, "tool", "-n", "pprof"], Path(home), GOCACHE=str(GO_CACHE), GOFLAGS="-mod=mod", GOTOOLCHAIN="local"
        ).strip()


def pprof(path: Path, *words: str) -> str:
    """What go tool pprof prints of a profile; nothing is fetched, nothing is kept."""
    home = path.parent / "pprof"
    home.mkdir(exist_ok=True)
    # Only files of the test: pprof must not find this machine's libc for the recording's.
    where = {"PPROF_TMPDIR": str(home), "PPROF_BINARY_PATH": str(home)}
    return output([program(), "-symbolize=none", *words, str(path)], home, **where)


def samples(raw: str) -> list[tuple[tuple[int, ...], dict[str, str]]]:
    """Values and labels of every sample of pprof -raw."""
    found = []
    lines = raw.split("Samples:\n")[1].split("Locations\n")[0].splitlines()[1:]
    for values, labels in zip(lines[::2], lines[1::2]):
        numbers = tuple(int(word) for word in values.split(":")[0].split())
        found.append((numbers, dict(re.findall(r"(\w+):\[([^]]*)\]", labels))))
    return found


def expected(rec: memtoll.Recording) -> list[tuple[tuple[int, ...], dict[str, str]]]:
    families = rec.toll["family"].to_dict()
    rows = []
    for site in rec.sites.to_dict("records"):
        labels = {"toll": site["toll"], "family": families[site["toll"]], "call": site["call"]}
        values = (round(site["time_s"] * 1e9), site["bytes"], site["count"])
        rows.append((values, {key: value for key, value in labels.items() if value}))
    return rows


def merged(rows: list[tuple[tuple[int, ...], dict[str, str]]]) -> dict[tuple[tuple[str, str], ...], list[int]]:
    """Sums by labels: pprof joins samples that have the same stack and labels, and drops empty ones."""
    sums: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for values, labels in rows:
        if any(values):
            key = tuple(sorted(labels.items()))
            sums[key] = [a + b for a, b in zip(sums.get(key, [0, 0, 0]), values)]
    return sums


def test_every_site_is_a_sample(scenario: Path, tmp_path: Path) -> None:
    path = tmp_path / "profile.pb.gz"
    with memtoll.open(scenario) as rec:
        export(rec, path)
        assert merged(samples(pprof(path, "-raw"))) == merged(expected(rec))
        comments = pprof(path, "-comments")
        assert rec.verdict.sentence in comments
        missing = rec.toll.index[rec.toll["not_captured"].notna()]
        assert all(toll in comments for toll in missing)


def test_top(heap_blocks: Path, tmp_path: Path) -> None:
    """The calloc of casebook 1, of which each was cleared by a memset."""
    path = tmp_path / "profile.pb.gz"
    with memtoll.open(heap_blocks) as rec:
        export(rec, path, toll="zero.libc")
        cleared = int(rec.toll.loc["zero.libc", "bytes"])
    top = pprof(path, "-top", "-sample_index=bytes", "-unit=B")
    assert f"{cleared}B total" in top
    assert re.search(rf"^\s*{cleared}B\s+100%\s+100%\s+{cleared}B\s+100%\s+calloc$", top, re.MULTILINE), top
    assert re.search(rf"{cleared}B\s+100%\s+round_once$", top, re.MULTILINE), top
    lines = pprof(path, "-top", "-lines", "-sample_index=count")
    assert "round_once /src/calloc_loop.c:42" in lines


def test_owner(heap_blocks: Path, tmp_path: Path) -> None:
    with memtoll.open(heap_blocks) as rec:
        for owner in ("allocated", "touched"):
            export(rec, tmp_path / f"{owner}.pb.gz", toll="zero.kernel", owner=owner)
    assert "__memset_avx2_unaligned" not in pprof(tmp_path / "allocated.pb.gz", "-top")
    assert "__memset_avx2_unaligned" in pprof(tmp_path / "touched.pb.gz", "-top")


def test_losses_are_exported(busy: Path, tmp_path: Path) -> None:
    path = tmp_path / "busy.pprof"
    with memtoll.open(busy) as rec:
        export(rec, path)
        assert merged(samples(pprof(path, "-raw"))) == merged(expected(rec))
    assert "69 ring_fault" in pprof(path, "-comments")
    assert "69 ring_fault" in pprof(path, "-top")


def test_export_is_reproducible(busy: Path, tmp_path: Path) -> None:
    for name in ("one.pb.gz", "two.pb.gz"):
        with memtoll.open(busy) as rec:
            export(rec, tmp_path / name)
    assert (tmp_path / "one.pb.gz").read_bytes() == (tmp_path / "two.pb.gz").read_bytes()


def test_inlined_functions_and_build_ids(tmp_path: Path) -> None:
    build = "4f1e09aa33bb"
    made = Facts(tmp_path / "inlined.memtoll")
    made.prices()
    made.slice()
    made.process(executable="/srv/program")
    stack = made.stack(
        ("malloc", "", 0), ("inner", "/src/a.c", 11), ("middle", "/src/a.c", 17), ("outer", "/src/a.c", 23),
        ("", "", 0),
    )  # fmt: skip
    made.call("malloc", stack, 1009, bytes=1009 * 4096, cpu_ns=10 * S // 100)
    made.cpu(S)
    made.meta(format="1", target_command="x", complete="1")
    made.save()
    with closing(sqlite3.connect(tmp_path / "inlined.memtoll")) as database, database:
        database.execute("UPDATE frame SET build_id = ? WHERE module = '/srv/program'", (build,))
        database.execute("UPDATE stack_frame SET inlined = 1 WHERE depth IN (1, 2)")
        database.execute("UPDATE stack_frame SET address = 4711 WHERE depth IN (1, 2, 3)")
        database.execute("UPDATE frame SET module_offset = 4711 WHERE file = '/src/a.c'")
    path = tmp_path / "inlined.pb.gz"
    with memtoll.open(tmp_path / "inlined.memtoll") as rec:
        export(rec, path, toll="alloc")
    raw = pprof(path, "-raw")
    locations = raw.split("Locations\n")[1].split("Mappings\n")[0]
    block = re.search(
        r"0x(\w+) M=1 inner /src/a.c:11:0 s=0\n\s+middle /src/a.c:17:0 s=0\n\s+outer /src/a.c:23:0", locations
    )
    assert block, locations
    mappings = raw.split("Mappings\n")[1].splitlines()
    start, limit, name, found = re.match(r"1: 0x(\w+)/0x(\w+)/0x0 (\S+) (\S+)", mappings[0]).groups()  # type: ignore[union-attr]
    assert (name, found) == ("/srv/program", build)
    assert int(block[1], 16) - int(start, 16) == 4711
    assert int(start, 16) < int(block[1], 16) < int(limit, 16)
    # The nameless frame of libc keeps its address, so that somebody who has the file can name it.
    assert "libc.so.6" in mappings[1] and "[FN]" not in mappings[1]
    assert re.search(r"inner \(inline\)$", pprof(path, "-top", "-cum"), re.MULTILINE)


def test_a_recording_with_nothing_in_it(tmp_path: Path) -> None:
    made = Facts(tmp_path / "empty.memtoll")
    made.prices()
    made.meta(format="1", target_command="x", complete="1")
    made.save()
    with memtoll.open(tmp_path / "empty.memtoll") as rec:
        export(rec, tmp_path / "empty.pb.gz")
    assert samples(pprof(tmp_path / "empty.pb.gz", "-raw")) == []


@pytest.mark.parametrize("module", ["google.protobuf.descriptor_pb2"])
def test_without_the_extra(heap_blocks: Path, tmp_path: Path, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from memtoll.export.profile_proto import profile_class

    profile_class.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with (
        memtoll.open(heap_blocks) as rec,
        pytest.raises(memtoll.MissingExtra, match=re.escape("pip install 'memtoll[pprof]'")),
    ):
        export(rec, tmp_path / "x.pb.gz")
    assert list(tmp_path.glob("*x.pb.gz*")) == []
