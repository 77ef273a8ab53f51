# SPDX-License-Identifier: GPL-2.0
"""memtoll doctor --ci: what a container lacks, and the setting that gives it; no privileges, and fewer of root's."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from harness import MEMTOLL, MIB, NOBODY, ROOT, finish, memtoll, record, spawn, tool, workload

pytestmark = pytest.mark.root

# What Docker gives a container (moby, oci/caps/defaults.go).
DOCKER: Final = (
    "chown", "dac_override", "fsetid", "fowner", "mknod", "net_raw", "setgid", "setuid", "setfcap", "setpcap",
    "net_bind_service", "sys_chroot", "kill", "audit_write",
)  # fmt: skip
BEFORE_6_15: Final = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 15)
NEEDED: Final = {"cap_bpf", "cap_perfmon"} | ({"cap_sys_ptrace"} if BEFORE_6_15 else set())


def setting(path: str) -> int:
    """A number of /proc/sys; 0: this kernel has no such file."""
    file = Path("/proc/sys/kernel", path)
    return int(file.read_text()) if file.exists() else 0


# Where a distribution takes more than these capabilities: test_each_by_itself holds there, too.
STRICT: Final = setting("perf_event_paranoid") > 2 or setting("yama/ptrace_scope") > 1
# x86-64
SYSCALLS: Final = {"perf_event_open": 298, "bpf": 321}


@pytest.fixture(name="program")
def fixture_program(public_dir: Path) -> Path:
    """A memtoll that everybody may run."""
    return Path(shutil.copy(MEMTOLL, public_dir / "memtoll"))


def doctor(*command: str | Path, **options: Any) -> tuple[int, list[str]]:
    done = finish(spawn([*command, "doctor", "--ci"], **options))
    assert done.stderr == "", done
    return done.status, done.stdout.splitlines()


def missing(*command: str | Path, **options: Any) -> dict[str, dict[str, Any]]:
    """By name, of the JSON."""
    done = finish(spawn([*command, "doctor", "--ci", "--json"], **options))
    found = json.loads(done.stdout)
    lacks = {each["name"]: each for each in found["missing"]}
    assert found["works"] == (not any(each["required"] for each in lacks.values()))
    assert done.status == (0 if found["works"] else 3), done
    for each in lacks.values():
        assert all(each[key] for key in ("why", "docker", "github", "kubernetes")), each
    return lacks


def bounded(*names: str) -> list[str]:
    """Root of a container that was given these."""
    return [tool("setpriv"), "--bounding-set=" + ",".join(["-all", *(f"+{name}" for name in names)])]


def test_root_of_the_host_lacks_nothing(program: Path) -> None:
    status, lines = doctor(program)
    assert status == 0 and lines[0].startswith("memtoll can trace here")
    assert not [line for line in lines if line.startswith("missing")]


@pytest.mark.skipif(STRICT, reason="kernel.perf_event_paranoid or yama.ptrace_scope of this machine is above the usual")
def test_a_container_of_docker(program: Path) -> None:
    """One line for each, with the settings; and with them a command is recorded."""
    lacks = missing(*bounded(*DOCKER), program)
    assert {name for name, each in lacks.items() if each["required"]} == NEEDED
    assert lacks["cap_bpf"]["docker"] == "--cap-add=BPF"
    assert lacks["cap_perfmon"]["github"].startswith("container.options: --cap-add=PERFMON;")
    assert lacks["cap_bpf"]["kubernetes"] == "securityContext.capabilities.add: [BPF]"
    status, lines = doctor(*bounded(*DOCKER), program)
    assert status == 3 and "report, explain" in lines[0]
    for name, each in lacks.items():
        (line,) = (line for line in lines if f" {name}: " in line)
        assert line.startswith("missing" if each["required"] else "better with")
        assert f"Docker: {each['docker']}. GitHub: {each['github']}. Kubernetes: {each['kubernetes']}." in line
    given = [each["docker"].removeprefix("--cap-add=").lower() for each in lacks.values() if each["required"]]
    assert doctor(*bounded(*DOCKER, *given), program)[0] == 0
    out = program.parent / "a.memtoll"
    traced: list[str | Path] = [
        *bounded(*DOCKER, *given),
        program,
        "record",
        "-o",
        out,
        "--probes",
        "faults",
        "--",
        "true",
    ]
    done = finish(spawn(traced))
    assert done.status == 0 and out.exists(), done


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_each_by_itself(program: Path, name: str) -> None:
    others = [each.removeprefix("cap_") for each in NEEDED - {name}]
    lacks = missing(*bounded(*DOCKER, *others), program)
    assert {one for one, each in lacks.items() if each["required"]} == {name}
    # What it says is true: without it nothing is recorded.
    traced: list[str | Path] = [*bounded(*DOCKER, *others), program, "record", "-o", program.parent / "a", "--", "true"]
    done = finish(spawn(traced))
    assert done.status == 3 and name in done.stderr, done


def test_another_user_than_root(program: Path) -> None:
    """Whose bounding set has all: to be root is enough. In a container it takes both."""
    user = [tool("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    lacks = missing(*user, program)
    assert {name for name, each in lacks.items() if each["required"]} == NEEDED
    assert lacks["cap_bpf"]["docker"] == "--user=0" and "sudo memtoll" in lacks["cap_bpf"]["github"]
    assert lacks["cap_bpf"]["kubernetes"] == "securityContext.runAsUser: 0"
    lacks = missing(*bounded(*DOCKER), *user, program)
    assert lacks["cap_bpf"]["docker"] == "--user=0 --cap-add=BPF"
    assert lacks["cap_bpf"]["kubernetes"] == "securityContext.runAsUser: 0, securityContext.capabilities.add: [BPF]"


def test_a_pid_namespace(program: Path) -> None:
    lacks = missing(tool("unshare"), "--pid", "--fork", "--mount-proc", program)
    assert lacks["pid namespace"]["required"]
    assert lacks["pid namespace"]["docker"] == "--pid=host"
    assert lacks["pid namespace"]["kubernetes"] == "spec.hostPID: true"


def test_a_user_namespace(program: Path) -> None:
    """Of rootless containers: root in it has all capabilities, and they open nothing."""
    lacks = missing(tool("unshare"), "--user", "--map-root-user", program)
    assert [name for name, each in lacks.items() if each["required"]] == ["user namespace"]
    assert lacks["user namespace"]["docker"].startswith("--userns=host")
    assert lacks["user namespace"]["kubernetes"] == "spec.hostUsers: true"


def refusing(number: int) -> Callable[[], None]:
    """A seccomp filter in the child: this system call fails with EPERM, as those of containers have it."""
    load, equal, give = 0x20, 0x15, 0x06
    program = b"".join(
        struct.pack("HBBI", *each)
        for each in (
            (load, 0, 0, 0),
            (equal, 0, 1, number),
            (give, 0, 0, 0x00050000 | errno.EPERM),  # SECCOMP_RET_ERRNO
            (give, 0, 0, 0x7FFF0000),  # SECCOMP_RET_ALLOW
        )
    )
    kept = ctypes.create_string_buffer(program)  # by the closure, too
    filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(kept)))
    libc = ctypes.CDLL(None, use_errno=True)

    def install() -> None:
        # PR_SET_SECCOMP, SECCOMP_MODE_FILTER; root needs no PR_SET_NO_NEW_PRIVS.
        if not kept or libc.prctl(22, 2, filter_, 0, 0):
            os._exit(99)

    return install


@pytest.mark.parametrize("call", sorted(SYSCALLS))
def test_a_seccomp_filter(program: Path, call: str) -> None:
    done = subprocess.run(
        [program, "doctor", "--ci", "--json"],
        preexec_fn=refusing(SYSCALLS[call]), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done
    (lack,) = (each for each in json.loads(done.stdout)["missing"] if each["required"])
    assert lack["name"] == f"{call}(2)" and lack["why"] == "refused by a seccomp filter"
    assert lack["docker"] == "--security-opt=seccomp=unconfined"
    assert lack["kubernetes"] == "securityContext.seccompProfile.type: Unconfined"


def test_what_is_not_tried_is_said(program: Path) -> None:
    _, lines = doctor(*bounded(*DOCKER), program)
    assert lines[-1].startswith("not tried: whether bpf(2) and perf_event_open(2) are filtered")
    assert not [line for line in doctor(program)[1] if line.startswith("not tried")]


def test_it_is_of_no_process(program: Path) -> None:
    done = memtoll("doctor", "--ci", "-p", "1")
    assert (done.status, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done


# ---- a regression, recorded


def test_more_rounds_are_found_with_their_line(tmp_path: Path) -> None:
    """The witness is how often the program calls calloc: all but the same few are cleared by it, in both runs."""
    before, after = tmp_path / "before.memtoll", tmp_path / "after.memtoll"
    for path, rounds in ((before, 211), (after, 422)):
        record(path, "--overhead-limit", "none", command=[workload("calloc_loop"), str(MIB), str(rounds)])
    done = memtoll("report", "--baseline", before, after)
    assert done.status == 0, done
    text = " ".join(done.stdout.split())
    figures = r"\(([\d,]+) times\) -> .*?\(([\d,]+) times\) at \S*/calloc_loop.c:(\d+)"
    found = re.search(r"calloc clears more memory: \w+, by calloc .*?" + figures, text)
    assert found, text
    assert int(found[2]) - int(found[1]) == 211
    lines = (ROOT / "userspace/tests/workloads/calloc_loop.c").read_text().splitlines()
    assert "calloc(" in lines[int(found[3]) - 1]
    assert "of a whole run" in text and "for blocks of much the same size" in text
    assert text.index("calloc clears more memory") < min(
        (text.index(title) for title in ("more mapping calls", "the kernel clears more") if title in text),
        default=len(text),
    )
    assert "no place does more memory work" in memtoll("report", "--baseline", before, before).stdout


def test_the_same_program_twice_has_nothing_more(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.memtoll" for number in range(2)]
    for path in paths:
        record(path, "--overhead-limit", "none", command=[workload("calloc_loop"), str(MIB), "211"])
    done = memtoll("report", "--baseline", *paths, "--format", "gitlab")
    assert [each for each in json.loads(done.stdout) if "calloc_loop.c" in each["location"]["path"]] == []
