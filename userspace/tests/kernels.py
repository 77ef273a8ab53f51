# SPDX-License-Identifier: GPL-2.0
"""Debian's kernels under emulation: commands run in them, what they left is read here.

A guest has the C library, the programs and memtoll of this machine, one processor, swap on zram and memory cgroups
of version 2. qemu, busybox, kmod and cpio do the work; apt finds and fetches the kernels, from the archive that
this system's own packages come from, into a directory beside the build, where they stay.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness import MEMTOLL, TESTS, environment, tool

CACHE: Final = MEMTOLL.parent / "kernels"
GUEST: Final = TESTS / "kernels"

MEMORY_MIB: Final = 640
OUT_MIB: Final = 64

# virtio: the disk that results come back on. ext4: files that the page cache can throw out. The rest: swap.
MODULES: Final = ("virtio_pci", "virtio_blk", "lzo", "lzo-rle", "zram", "ext4")
# Directories of a kernel's modules that these and what they need lie in.
PARTS: Final = ("arch", "block", "crypto", "drivers/block", "drivers/virtio", "fs", "lib", "mm")

CPU: Final = "qemu64,+rdrand,+smep,+smap"
# qemu 7.2 gets cmpxchg16b wrong now and then, and Linux 6.12 dies of it at boot. Newer ones allocate where no lock
# may be taken, which task storage is made by since 6.19, by that instruction only (mm/slub.c, kmalloc_nolock).
WITHOUT_CX16: Final = (6, 13)
# The emulated clock is one clock: nothing to compare it with. A busy host may miss the timer's check.
COMMAND_LINE: Final = "console=ttyS0 rdinit=/init quiet panic=-1 oops=panic tsc=reliable no_timer_check"


# A network, an emulator or a guest may have a bad moment, but not three of them.
TRIES: Final = 3
# Until a guest is ready, which takes it seven seconds: there is nothing of ours in it before.
READY_SECONDS: Final = 180
READY: Final = "guest: started"
DONE: Final = "guest: done"


class Unavailable(Exception):
    """This kernel cannot be had here, or does not get as far as to run anything of ours."""


class GuestError(AssertionError):
    """The guest did not come to its end once it had begun with what is tested."""


def run(command: Sequence[str | Path], seconds: float = 300, cwd: Path | None = None) -> str:
    words = [str(word) for word in command]
    words[0] = tool(words[0])
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=seconds, cwd=cwd, env=environment(), check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{Path(words[0]).name}: not done after {seconds} s") from error
    if done.returncode != 0:
        raise Unavailable(f"{Path(words[0]).name}: {done.stderr.strip()[-300:]}")
    return done.stdout


# Packages.


def archive() -> str:
    """Where this system's apt has Debian's packages from."""
    lines = run(["apt-get", "indextargets", "--format", "$(REPO_URI)|$(ORIGIN)|$(LABEL)", "Created-By: Packages"])
    for line in lines.splitlines():
        uri, origin, label = line.split("|")
        if (origin, label) == ("Debian", "Debian"):
            return uri
    raise Unavailable("this system's apt has no archive of Debian")


class Apt:
    """apt with directories of its own: another suite, no root, and this system's own lists left alone."""

    def __init__(self, suite: str) -> None:
        home = CACHE / "apt" / suite
        for name in ("lists/partial", "cache/archives/partial", "parts"):
            (home / name).mkdir(parents=True, exist_ok=True)
        sources = home / "sources.list"
        sources.write_text(f"deb {archive()} {suite} main\n")
        options = {
            "Dir::State::Lists": home / "lists",
            "Dir::Cache": home / "cache",
            "Dir::Etc::SourceList": sources,
            "Dir::Etc::SourceParts": home / "parts",
            "APT::Sandbox::User": "",
            "Debug::NoLocking": "1",
            "Acquire::Languages": "none",
            "Acquire::Check-Valid-Until": "false",
            "Acquire::http::Timeout": "30",
            # What a desktop shows of packages is of no use here.
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        }
        self.options = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        self("apt-get", "-qq", "update", "--error-on=any")

    def __call__(self, program: str, *words: str, cwd: Path | None = None) -> str:
        return run([program, *self.options, *words], cwd=cwd)

    def needs(self, package: str, pattern: str) -> list[str]:
        """Packages of that form that a package depends on."""
        lines = self("apt-cache", "depends", "--important", package).splitlines()
        return [name for line in lines for name in re.findall(rf"Depends: ({pattern})$", line)]


@dataclass(frozen=True)
class Kernel:
    suite: str
    release: str
    image: Path
    modules: tuple[Path, ...]

    @property
    def version(self) -> tuple[int, int]:
        major, minor = self.release.split(".")[:2]
        return int(major), int(re.sub(r"\D.*", "", minor))


def unpack(packages: Sequence[Path], tree: Path) -> None:
    """Of a kernel's hundreds of MiB what a guest needs."""
    wanted = ["*/boot/vmlinuz-*", "*/vmlinuz", "*/modules.builtin*", "*/modules.order"]
    wanted += [f"*/kernel/{part}/*" for part in PARTS]
    for package in packages:
        with subprocess.Popen([tool("dpkg-deb"), "--fsys-tarfile", package], stdout=subprocess.PIPE) as stream:
            command = [tool("tar"), "-x", "-C", str(tree), "--wildcards", "--no-same-owner", *wanted]
            # A pattern that is in none of a package's files is no error here.
            subprocess.run(command, stdin=stream.stdout, stderr=subprocess.DEVNULL, timeout=300, check=False)


def decompressed(module: Path, folder: Path) -> Path:
    plain = folder / re.sub(r"\.ko.*", ".ko", module.name)
    if module.suffix == ".xz":
        plain.write_bytes(lzma.decompress(module.read_bytes()))
    else:
        shutil.copyfile(module, plain)
    return plain


def fetch(suite: str, folder: Path) -> None:
    """Fill the folder: the image, the modules in the order they are to be loaded in, and what it is."""
    apt = Apt(suite)
    (package,) = apt.needs("linux-image-amd64", r"linux-image-\d\S*")[:1] or [""]
    if not package:
        raise Unavailable(f"{suite} has no linux-image-amd64")
    # From 7.0 on the image's package is empty and needs three others.
    names = [package, *apt.needs(package, r"linux-(?:binary|modules|base)-\d\S*")]
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        tree = Path(scratch)
        apt("apt-get", "-qq", "download", *names, cwd=tree)
        unpack(sorted(tree.glob("*.deb")), tree)
        if not (tree / "lib").exists():
            (tree / "lib").symlink_to("usr/lib")
        (modules,) = (tree / "lib/modules").iterdir()
        image = next(iter([*tree.glob("boot/vmlinuz-*"), *modules.glob("vmlinuz")]))
        shutil.copyfile(image, folder / "vmlinuz")
        run(["depmod", "-b", tree, modules.name])
        order: list[str] = []
        for name in MODULES:
            command = ["modprobe", "-C", "/dev/null", "-d", str(tree), "-S", modules.name, "--show-depends", name]
            for line in run(command).splitlines():
                if line.startswith("insmod "):
                    plain = decompressed(Path(line.split()[1]), folder).name
                    order += [plain] if plain not in order else []
    about = {"release": modules.name, "asked": MODULES, "modules": order}
    (folder / "kernel.json").write_text(json.dumps(about))


def fetch_with_patience(suite: str, folder: Path) -> None:
    for left in reversed(range(TRIES)):
        try:
            return fetch(suite, folder)
        except Unavailable:
            if not left:
                raise


def kernel(suite: str) -> Kernel:
    folder = CACHE / suite
    about = folder / "kernel.json"
    # Fetched for guests that had less, it is fetched again.
    if not about.exists() or tuple(json.loads(about.read_text()).get("asked", ())) != MODULES:
        folder.mkdir(parents=True, exist_ok=True)
        fetch_with_patience(suite, folder)
    known = json.loads(about.read_text())
    return Kernel(suite, known["release"], folder / "vmlinuz", tuple(folder / name for name in known["modules"]))


# Guests.


@dataclass
class Case:
    """A command that ran in a guest."""

    status: int
    stdout: str
    stderr: str
    swapped: dict[str, int]
    # Of a case that waits for the guest to swap: pages that came back, each time that it was run.
    tries: tuple[int, ...]


@dataclass(frozen=True)
class Swapping:
    """What a guest has to do for a case to show anything: bring back so many pages. Else it is run again."""

    low: int
    high: int


@dataclass
class Guest:
    """What came back from one."""

    kernel: Kernel
    out: Path
    cases: dict[str, Case] = field(default_factory=dict)


def libraries(program: Path) -> set[Path]:
    """Files that the loader maps for it."""
    done = subprocess.run([tool("ldd"), program], capture_output=True, text=True, timeout=60, check=False)
    return {Path(path) for path in re.findall(r"(?:^|=>)\s+(/\S+) \(", done.stdout, re.M)}


def case_line(name: str, command: Sequence[str], wanted: Swapping | None) -> str:
    how = f"until_swapped {wanted.low} {wanted.high}" if wanted else "run"
    return f"{how} {name} {' '.join(map(shlex.quote, command))}\n"


def root(folder: Path, programs: Sequence[Path], modules: Sequence[Path], cases: str) -> None:
    """The guest's files. Programs lie in /bin; libraries where they lie here."""
    for name in ("bin", "dev", "proc", "sys", "tmp", "out", "lib/modules"):
        (folder / name).mkdir(parents=True)
    busybox = Path(tool("busybox"))
    needed: set[Path] = set()
    for program in (busybox, *programs):
        shutil.copy(program, folder / "bin" / program.name)
        needed |= libraries(program)
    for path in needed:
        (folder / str(path.parent).lstrip("/")).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / str(path).lstrip("/"))
    for applet in run([busybox, "--list"]).split():
        if not (folder / "bin" / applet).exists():
            (folder / "bin" / applet).symlink_to("busybox")
    for module in modules:
        shutil.copy(module, folder / "lib/modules")
    (folder / "modules").write_text("".join(f"/lib/modules/{module.name}\n" for module in modules))
    (folder / "cases").write_text(cases)
    for script, place in (("init", "init"), ("attach", "bin/attach")):
        shutil.copy(GUEST / script, folder / place)
        (folder / place).chmod(0o755)


def initramfs(folder: Path, file: Path) -> None:
    with (
        file.open("wb") as out,
        subprocess.Popen([tool("find"), ".", "-print0"], cwd=folder, stdout=subprocess.PIPE) as names,
    ):
        command = [tool("cpio"), "--quiet", "-0", "-o", "-H", "newc", "-R", "0:0"]
        subprocess.run(command, cwd=folder, stdin=names.stdout, stdout=out, timeout=60, check=True)


def emulate(guest: Kernel, image: Path, disk: Path, console: Path, end: float, memory_mib: int = MEMORY_MIB) -> str:
    """Run the machine until it is switched off, or until then; what it said."""
    cpu = f"{CPU},-cx16" if guest.version < WITHOUT_CX16 else CPU
    command = [tool("qemu-system-x86_64"), "-accel", "tcg", "-cpu", cpu, "-smp", "1", "-m", str(memory_mib)]
    command += ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"]
    command += ["-kernel", str(guest.image), "-initrd", str(image), "-append", COMMAND_LINE]
    command += ["-serial", f"file:{console}", "-drive", f"file={disk},if=virtio,format=raw,cache=unsafe"]
    ready_by = time.monotonic() + READY_SECONDS
    errors = console.with_suffix(".errors")
    console.write_text("")
    with (
        errors.open("w") as stderr,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=stderr) as process,
    ):
        why = ""
        while process.poll() is None and not why:
            said = console.read_text(errors="replace")
            if time.monotonic() > (end if READY in said else min(end, ready_by)):
                why = "killed: it took too long"
                process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
    return console.read_text(errors="replace") + errors.read_text(errors="replace") + why


def run_to_its_end(guest: Kernel, image: Path, disk: Path, end: float, out: Path, memory_mib: int = MEMORY_MIB) -> None:
    """Boot it until it is ready, and bring back what it leaves on its disk."""
    for _ in range(TRIES):
        with disk.open("wb") as file:
            os.truncate(file.fileno(), OUT_MIB << 20)
        said = emulate(guest, image, disk, out.with_name(f"{out.name}.console"), end, memory_mib)
        if READY in said:
            break
    if READY not in said:
        raise Unavailable(f"Linux {guest.release} did not boot, {TRIES} times:\n{said[-1000:]}")
    if DONE not in said:
        raise GuestError(f"Linux {guest.release} did not come to its end:\n{said[-3000:]}")
    with tarfile.open(disk) as tar:
        tar.extractall(out)


def boot(
    guest: Kernel,
    programs: Sequence[Path],
    commands: Mapping[str, Sequence[str]],
    wanted: Mapping[str, Swapping],
    seconds: float,
) -> Guest:
    """Boot a kernel, run the commands one after the other, bring back /out."""
    out = CACHE / guest.suite / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        folder, image, disk = (Path(scratch) / name for name in ("root", "initramfs", "disk"))
        lines = [case_line(name, command, wanted.get(name)) for name, command in commands.items()]
        root(folder, programs, guest.modules, "".join(lines))
        initramfs(folder, image)
        run_to_its_end(guest, image, disk, end, out)
    result = Guest(guest, out)
    for name in commands:
        texts = [(out / f"{name}.{part}").read_text() for part in ("status", "stdout", "stderr", "before", "after")]
        before, after = (dict(line.split() for line in text.splitlines()) for text in texts[3:])
        swapped = {key: int(after[key]) - int(before[key]) for key in before}
        tries = tuple(map(int, (out / f"{name}.tries").read_text().split())) if name in wanted else ()
        result.cases[name] = Case(int(texts[0]), texts[1], texts[2], swapped, tries)
    return result
