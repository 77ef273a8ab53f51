# SPDX-License-Identifier: GPL-2.0
"""bcc's memleak on a kernel whose own headers are not installed, by the bindings of bcc 0.26.

memleak compiles its program against kernel headers, of which it uses struct pt_regs and the BPF helpers: any
version's do. Debian's come in two trees that name each other; bcc looks into one.

The bindings of bcc 0.26 call bpf_attach_uprobe() without its last argument, ref_ctr_offset (bcc 0.23 added it to
libbcc): the kernel gets what is on the stack there, and refuses it unless that happens to be 0.

An allocator's library that lacks one of the rarer functions (jemalloc's: pvalloc, mmap) is traced without it; memleak
would give up.

    memleak.py PROGRAM ARGUMENTS...    runs memleak so
"""

from __future__ import annotations

import ctypes
import importlib
import platform
import re
import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final


def version(tree: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", tree.name)]


def headers(scratch: Path, sources: Path = Path("/usr/src")) -> Path | None:
    """What BCC_KERNEL_SOURCE has to be; None: nothing, the running kernel's headers are where bcc looks."""
    if Path("/lib/modules", platform.release(), "build").exists():
        return None
    trees = [tree for tree in sources.glob("linux-headers-*-amd64") if (tree / "include/generated").exists()]
    if not trees:
        raise FileNotFoundError("no kernel headers for memleak to compile with: install linux-headers-amd64")
    newest = max(trees, key=version)
    common = newest.with_name(newest.name.removesuffix("-amd64") + "-common")
    merged = scratch / "headers"
    if not merged.exists():
        for tree in (common, newest):
            for name in ("include", "arch/x86/include"):
                # Links to headers: a tree of some thousand, made in a second.
                shutil.copytree(
                    tree / name, merged / name, copy_function=lambda a, b: Path(b).symlink_to(a), dirs_exist_ok=True
                )
    return merged


RARE: Final = ("valloc", "pvalloc", "memalign", "mmap", "munmap")


def passing_over(attach: Callable[..., Any]) -> Callable[..., Any]:
    def attach_what_is_there(*given: Any, **named: Any) -> Any:
        try:
            return attach(*given, **named)
        except Exception:
            if named.get("sym") not in RARE:
                raise

    return attach_what_is_there


def run(words: list[str]) -> None:
    bcc = importlib.import_module("bcc")

    attach = bcc.lib.bpf_attach_uprobe

    def attach_whole(*given: Any) -> int:
        return int(attach(*given, *([ctypes.c_uint32(0)] if len(given) == 6 else [])))

    bcc.lib.bpf_attach_uprobe = attach_whole
    for method in ("attach_uprobe", "attach_uretprobe"):
        setattr(bcc.BPF, method, passing_over(getattr(bcc.BPF, method)))
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    run(sys.argv[1:])
