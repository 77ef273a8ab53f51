# SPDX-License-Identifier: GPL-2.0
"""Casebook 3: a TLS client whose every recv clears its whole buffer, and one whose recv does not.

pyOpenSSL 16.2.0 clears: recv gets its buffer from ffi.new. 17.5.0 does no longer (new_allocator without
clearing). 16.2.0 runs on the current cffi, with cryptography up to 3.4.8: later ones lack functions that
it calls. Both are installed by pip into environments of their own, kept beside the built files.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from environments import python_with
from harness import (
    MIB,
    SOURCES,
    Program,
    Recording,
    finish,
    load,
    site_line,
    start_record,
    tool,
    wait_attached,
    wait_more_slices,
    wait_until,
)

pytestmark = pytest.mark.root

CLEARS = ("pyOpenSSL==16.2.0", "cryptography==3.4.8", "cffi>=2")
NEWEST = ("pyOpenSSL",)


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The server's certificate, and its key."""
    place = tmp_path_factory.mktemp("server")
    certificate, key = place / "certificate.pem", place / "key.pem"
    subprocess.run(
        [
            tool("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
            "-keyout", str(key), "-out", str(certificate),
        ],
        capture_output=True,
        timeout=60,
        check=True,
    )  # fmt: skip
    return certificate, key


@pytest.fixture
def port(identity: tuple[Path, Path]) -> Iterator[int]:
    with Program("/usr/bin/python3", SOURCES / "python_tls_server.py", *identity) as server:
        yield int(server.lines[0]["port"])


@dataclass
class Client:
    recording: Recording
    witness: dict[str, Any]


warm: set[Path] = set()


def client(path: Path, port: int, python: Path, size: int, recvs: int) -> Client:
    """Attached to once it is connected: what its imports allocate at thousands of places is not asked for."""
    if python not in warm:
        # What a new environment reads and compiles at its first run is not the client's.
        words: list[str | Path] = [python, SOURCES / "python_tls.py", str(port), "1000", "3"]
        subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True)
        warm.add(python)
    command: list[str | Path] = [python, SOURCES / "python_tls.py", str(port), str(size), str(recvs)]
    with Program(*command, env={"PYTHONNOUSERSITE": "1"}) as program:
        tracer = start_record(path, "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        program.go()
        wait_until(lambda: len(program.lines) > 1, "what the client received")
        # By the end of the next slice that begins now all its stacks have been read.
        wait_more_slices(path, 2)
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
        witness = program.lines[-1]
    assert result.status == 0, result
    recording = load(path, result)
    assert witness["recvs"] == recvs and 0 < witness["bytes"] <= recvs * 16384
    return Client(recording, witness)


def in_recv(frame: dict[str, Any], witness: dict[str, Any]) -> bool:
    same: bool = frame["kind"] == "python" and os.path.realpath(frame["file"]) == os.path.realpath(witness["file"])
    inside: bool = witness["first"] <= frame["line"] <= witness["last"]
    return same and inside and frame["function"].split(".")[-1] == "recv"


def test_every_recv_clears_its_whole_buffer(tmp_path: Path, port: int) -> None:
    # No cache holds it, and the heap still serves it: up to 32 MiB.
    size, recvs = 30 * MIB, 211
    done = client(tmp_path / "a.memtoll", port, python_with(CLEARS), size, recvs)
    report, witness = done.recording.report, done.witness
    assert witness["version"] == "16.2.0"
    # 6 GB are cleared for 3 MB that are decrypted.
    assert done.recording.dominant == "zeroing"
    # All but the first, whose block gets a mapping and raises the threshold; 1,920 times the data.
    assert done.recording.toll("zero.libc", "bytes") == pytest.approx((recvs - 1) * size, rel=0.02)
    assert done.recording.toll("zero.libc", "bytes") > 1500 * witness["bytes"]
    (site, *_) = (site for site in report["sites"] if site["toll"] == "zero.libc")
    assert site["call"] == "calloc" and site["count"] == pytest.approx(recvs - 1, abs=2)
    frames = site["allocated_at"]
    at = next(i for i, frame in enumerate(frames) if in_recv(frame, witness))
    assert any("_cffi_backend" in frame["module"] for frame in frames[:at]), frames
    # What can be changed here is the program's own line, which asks for so much; the package's are in the stack.
    place = f"python_tls.py:{site_line('python_tls.py', 'receives')} (<module>)"
    sentence = report["verdict"]["sentence"]
    assert "libc's calloc clears" in sentence and f"at {place}" in sentence, sentence
    (advice,) = (each for each in report["verdict"]["advice"] if each["code"] == "calloc-reuse-memset")
    assert "blocks of 30.0 MiB" in advice["text"] and place in advice["text"]


def test_a_buffer_of_100_mib_costs_no_zeroing(tmp_path: Path, port: int) -> None:
    size, recvs = 100 * MIB, 401
    done = client(tmp_path / "a.memtoll", port, python_with(CLEARS), size, recvs)
    assert done.recording.toll("zero.libc", "bytes") < size
    # Of each buffer's 25,600 pages those are touched that hold what came, a record of TLS at most.
    assert done.recording.toll("zero.kernel", "bytes") < 0.01 * recvs * size
    assert "calloc-reuse-memset" not in {each["code"] for each in done.recording.report["verdict"]["advice"]}
    # The buffers are seen all the same: made, freed and never used but for their first pages.
    (row, *_) = (row for row in done.recording.report["allocations"] if row["bytes"] >= recvs * size)
    assert row["call"] == "calloc" and row["calls"] == recvs
    assert any(in_recv(frame, done.witness) for frame in row["allocated_at"])


@pytest.mark.releases
def test_newest_version_does_not_clear(tmp_path: Path, port: int) -> None:
    size, recvs = 10 * MIB, 401
    done = client(tmp_path / "a.memtoll", port, python_with(NEWEST), size, recvs)
    assert int(done.witness["version"].split(".")[0]) >= 25
    assert done.recording.toll("zero.libc", "bytes") < 10 * size
    assert "calloc-reuse-memset" not in {each["code"] for each in done.recording.report["verdict"]["advice"]}
    # An estimate, where malloc was watched part of the time.
    rows = [row for row in done.recording.report["allocations"] if row["bytes"] >= 0.9 * size * row["calls"]]
    assert {row["call"] for row in rows} == {"malloc"}, rows
    assert sum(row["bytes"] + (row["bytes_error"] or 0) for row in rows) >= recvs * size, rows
