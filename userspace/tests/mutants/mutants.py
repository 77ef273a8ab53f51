#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""mutants.py [--list] [--whole] [NAME...]: are the tests worth their time? The product is broken on purpose to see.

A mutant is one slip as a developer makes it: a swapped sign, a lost counter, an off-by-one page, a condition left
out. Each is applied, by itself, to a copy of the tracked files in .output/mutants, built there, and given to the
tests that should notice (`tests`), one file after the other until one fails: then it is caught. What no such test
notices has survived; with --whole it is given to all of `make test` before that is said. First the same tests are run
in the copy unbroken, all of which have to pass. Traces real processes, so it asks for root, by sudo.

What a mutant replaces is exact text that stands once in its file, not a line number: it survives edits around it. When
the text itself is rewritten the mutant no longer applies, which is an error (test_cli_mutants.py fails at once): put
the same slip into the new code, or choose another place. A new mutant must change what is recorded or said (else no
test can catch it), must not move a probe (one at a wrong instruction ends the traced program), and is chosen before
looking at what the tests check. A survivor gets a test, not a better choice of mutant.

Exit status: 0 all were caught, 1 some survived, 2 one does not apply or build, or the unbroken copy fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
TESTS: Final = Path("userspace/tests")
ANALYSIS: Final = Path("analysis/tests")
COPY: Final = ROOT / ".output" / "mutants"
OUT: Final = ".output"
# Of a unit test, which takes seconds. Python's have a limit of their own (suite.py).
UNIT_SECONDS: Final = 120
NO_TESTS: Final = 5  # pytest's status where a selection is empty


@dataclass(frozen=True)
class Mutant:
    """name; the file; its text, which stands there once, and what replaces it; what is wrong then; who should see it.

    tests: files of userspace/tests or analysis/tests, the quickest first; of a long one, file::test.
    """

    name: str
    file: str
    text: str
    replacement: str
    breaks: str
    tests: tuple[str, ...]


MUTANTS: Final = (
    # ---- bpf ----
    Mutant(
        "file-write-is-shared",
        "bpf/probes/fault_class.bpf.h",
        "bool copies = write && !area->shared;",
        "bool copies = write && area->shared;",
        "The first write to a private file page counts as read, and to a shared one as copied.",
        ("test_e2e_classes.py::test_private_file_pages_are_copied",),
    ),
    Mutant(
        "one-page-less-in-order",
        "bpf/probes/fault.bpf.c",
        "thread->run.pages += followed;",
        "thread->run.pages += followed - 1;",
        "Of the pages that were touched in order after the first one is not counted.",
        ("test_e2e_classes.py::test_sequential_faults_beside_another_thread",),
    ),
    Mutant(
        "around-begins-elsewhere",
        "bpf/memory/page_state.bpf.c",
        "fault->address += bits_in((fresh & -fresh) - 1) * MEMTOLL_PAGE_SIZE;",
        "fault->address -= bits_in((fresh & -fresh) - 1) * MEMTOLL_PAGE_SIZE;",
        "What a fault mapped around it is said to begin before the first of these pages, not at it.",
        ("test_e2e_areas.py::test_cached_file",),
    ),
    Mutant(
        "nested-is-outermost",
        "bpf/probes/alloc.bpf.c",
        "return sp < thread->call.sp;",
        "return sp > thread->call.sp;",
        "A call that the allocator makes of itself is taken for a new one, and the open one for left.",
        ("test_e2e_alike.py::test_two_functions_with_the_same_entry",),
    ),
    Mutant(
        "unwind-after-the-call",
        "bpf/stacks/unwind.bpf.c",
        "address = walk->exact ? walk->ip : walk->ip - 1;",
        "address = walk->ip;",
        "A caller's rule is that of the return address, which may be the next function's first byte.",
        ("test_e2e_stacks.py",),
    ),
    Mutant(
        "swap-in-is-out",
        "bpf/probes/swap.bpf.c",
        "\t\tif (task->flags & PF_MEMALLOC_FLAG)\n",
        "",
        "Pages that a process brings in from swap, or unmaps there, count as pushed out by it.",
        ("test_e2e_swap.py::test_cyclic_sweep_thrashes",),
    ),
    Mutant(
        "swap-types-all-devices",
        "bpf/probes/fault_class.bpf.h",
        ">= SWAP_TYPE_SPECIAL",
        "> SWAP_TYPE_SPECIAL",
        "Pages that are being moved, of the kernel's special swap types, count as swapped in.",
        ("test_bpf_fault_class.c",),
    ),
    Mutant(
        "series-with-gaps",
        "bpf/probes/fault.bpf.c",
        "\t       run->address - series->address == series->pages * MEMTOLL_PAGE_SIZE &&\n",
        "",
        "Runs that do not lie side by side are told as one series: the later ones are said to be elsewhere.",
        ("test_bpf_runs.c",),
    ),
    Mutant(
        "failed-realloc-frees",
        "bpf/probes/alloc.bpf.c",
        "if (event.old_addr && (addr || !call->size))",
        "if (event.old_addr)",
        "A block whose realloc failed is no longer followed: its free is not seen.",
        ("test_bpf_alloc.c",),
    ),
    Mutant(
        "saved-rbp-from-its-own",
        "bpf/stacks/unwind.bpf.c",
        "walk->bp_from = walk->bp + UNWIND_RBP_OFFSET(rule);",
        "walk->bp_from = cfa + UNWIND_RBP_OFFSET(rule);",
        "In a function that realigns its stack the caller's rbp is read from the wrong place.",
        ("test_bpf_unwind.c",),
    ),
    # ---- userspace ----
    Mutant(
        "split-run-counts-twice",
        "userspace/ledger/ledger.c",
        "\t\t*whole[i] -= *share[i];\n",
        "",
        "Of a run that is divided among owners the later ones get the faults of the earlier ones, too.",
        ("test_ledger.c",),
    ),
    Mutant(
        "mremap-keeps-the-tail",
        "userspace/ledger/regions.c",
        "unmap(ledger, process, mapping, from + after, from + before, now_ns);",
        "unmap(ledger, process, mapping, from + before, from + after, now_ns);",
        "What mremap cuts off a mapping still belongs to it.",
        ("test_regions.c", "test_ledger.c"),
    ),
    Mutant(
        "heap-never-fell-far",
        "userspace/ledger/giveback.c",
        "size->fell ? MIN(size->low, now) : now",
        "size->fell ? MAX(size->low, now) : now",
        "How far the heap's end went down is that of its smallest step: the advised trim_threshold is too low.",
        ("test_giveback.c",),
    ),
    Mutant(
        "governor-takes-all",
        "userspace/budget/governor.c",
        "\t\tload -= governor->load[group];\n",
        "",
        "Over the limit, groups of probes are taken away although the first of them was enough.",
        ("test_governor.c",),
    ),
    Mutant(
        "last-slice-only",
        "userspace/recording/recording_facts.c",
        '" pages = pages + excluded.pages,"',
        '" pages = excluded.pages,"',
        "A second row of the same fault in a slice replaces the pages of the first.",
        ("test_recording_facts.c", "test_recording.c"),
    ),
    Mutant(
        "offset-before-the-call",
        "userspace/symbols/symbolize.c",
        "file_address + is_return_address",
        "file_address - is_return_address",
        "The module offset of a caller is two bytes too low.",
        ("test_symbolize.c", "test_cli_symbolize.py"),
    ),
    Mutant(
        "first-entry-wins",
        "userspace/unwind/unwind_table.c",
        "return a->program < b->program ? -1 : a->program > b->program;",
        "return a->program > b->program ? -1 : a->program < b->program;",
        "Of two unwind entries for the same code the earlier one counts, where the later one should.",
        ("test_unwind_table.c", "test_unwind_hostile.c", "test_unwind_programs.c"),
    ),
    # ---- SQL ----
    Mutant(
        "probes-added-to-mapping",
        "userspace/views/kernel_work.sql",
        "m.cpu_ns - m.populated_ns - m.calls * c.map_inside_ns AS net_ns",
        "m.cpu_ns - m.populated_ns + m.calls * c.map_inside_ns AS net_ns",
        "What the probes cost inside mapping calls is put on top of their time instead of taken out.",
        ("test_views.py",),
    ),
    Mutant(
        "arena-keeps-too-little",
        "userspace/views/giveback.sql",
        "THEN 67108864 END AS pad_value",
        "THEN 1048576 END AS pad_value",
        "The top_pad advised for arenas is too low to stop the storm.",
        ("test_views_giveback.py",),
    ),
    Mutant(
        "cache-a-bucket-smaller",
        "userspace/views/reads.sql",
        "d.high * r.block_bytes",
        "d.low * r.block_bytes",
        "The miss-ratio curve promises the hits of a cache to one that is a bucket smaller.",
        ("test_e2e_reads.py::test_passes_over_a_file",),
    ),
    Mutant(
        "doubtful-order-not-said",
        "userspace/views/verdict.sql",
        "m.second_high >= m.first_low",
        "m.second_high <= m.first_low",
        "That the order of two families is not certain is said where it is certain, and only there.",
        ("test_views.py",),
    ),
    # ---- analysis ----
    Mutant(
        "one-is-read-as-zero",
        "analysis/memtoll/pages.py",
        "values[none] = kinds[none] == ONE",
        "values[none] = 0",
        "Read from the pages of a large recording, every 1 is a 0.",
        ("test_bulk.py",),
    ),
    Mutant(
        "variance-with-wrong-sign",
        "analysis/memtoll/comparison.py",
        'sums["xx"] - 2 * rate',
        'sums["xx"] + 2 * rate',
        "The interval of a difference is far too wide: real changes are called none.",
        ("test_diff.py",),
    ),
    Mutant(
        "stacks-leaf-first",
        "analysis/memtoll/stacks.py",
        "ORDER BY stack_id, depth DESC",
        "ORDER BY stack_id, depth",
        "The text of a stack begins with its leaf: flame graphs stand on their head.",
        ("test_stacks.py",),
    ),
)


class Broken(Exception):
    """The mutant does not apply or the copy fails: no statement about the tests."""


def located(test: str, root: Path = ROOT) -> Path:
    """Path in the tree, with ::test, of what a mutant names."""
    name, _, one = test.partition("::")
    for folder in (TESTS, ANALYSIS):
        for file in (root / folder).rglob(name):
            return file.relative_to(root).with_name(f"{name}::{one}" if one else name)
    raise Broken(f"there is no test {test}")


def applied(mutant: Mutant, source: str) -> str:
    count = source.count(mutant.text)
    if count != 1:
        raise Broken(f"does not apply: its text stands {count} times in {mutant.file}")
    return source.replace(mutant.text, mutant.replacement)


# ---- the copy ----


def refresh() -> None:
    """The tracked files as they are now; what is the same stays, so that little is built anew."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {name for name in listed.split("\0") if name and (ROOT / name).exists()}
    for name in sorted(tracked):
        there, here = COPY / name, ROOT / name
        if here.is_symlink():
            there.parent.mkdir(parents=True, exist_ok=True)
            there.unlink(missing_ok=True)
            there.symlink_to(here.readlink())
        elif not there.is_file() or there.read_bytes() != here.read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(here, there)
    for there in COPY.rglob("*"):
        name = str(there.relative_to(COPY))
        if not name.startswith(OUT + os.sep) and there.is_file() and name not in tracked:
            there.unlink()


def environment() -> dict[str, str]:
    """The tests take the copy's own build where nothing says another."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMTOLL", "MAKE", "MFLAGS"))}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"}


def run(words: Sequence[str], seconds: float | None = None) -> tuple[bool, str]:
    try:
        done = subprocess.run(
            words,
            cwd=COPY,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return False, (error.stdout or b"").decode(errors="replace") + f"\nnot done in {seconds} s"
    return done.returncode in (0, NO_TESTS), done.stdout.decode(errors="replace")


def is_unit(test: Path) -> bool:
    return test.suffix == ".c"


def build(tests: Sequence[Path]) -> None:
    """The program, and of the tests those that are wanted."""
    units = [f"{OUT}/tests/{test.stem}" for test in tests if is_unit(test)]
    sources = [] if all(map(is_unit, tests)) else sorted((COPY / TESTS / "workloads").glob("*.c"))
    workloads = [f"{OUT}/workloads/{file.stem}{'.so' if file.stem.startswith('lib') else ''}" for file in sources]
    well, said = run(["make", "--no-print-directory", f"{OUT}/memtoll", *units, *workloads])
    if not well:
        raise Broken("does not build:\n" + said)


# ---- running ----


def command(test: Path) -> list[str]:
    if is_unit(test):
        return [f"{OUT}/tests/{test.stem}"]
    return [*pytest(), "-x", str(test)]


def pytest() -> list[str]:
    words = ["/usr/bin/python3", "-B", "-m", "pytest", "-q", "-c", str(TESTS / "pyproject.toml"), "--rootdir", "."]
    return [*([] if os.geteuid() == 0 else ["sudo"]), *words, "-m", "not measure and not guest"]


def failed(test: Path | None, said: str) -> str:
    """The name of the test that failed first, by what was printed."""
    found = re.search(r"^(?:FAILED|ERROR) ([^\s@]+)|^\[  FAILED  \] (\w+)|^failed: (\S+)", said, re.MULTILINE)
    name = next(filter(None, found.groups()), "") if found else ""
    if test and is_unit(test):
        return f"{test.name} {name or '(it crashed)'}"
    return name.rpartition("/")[2] or (f"{test.name} (it did not end well)" if test else "make test")


def hunt(mutant: Mutant, whole: bool) -> str | None:
    """Who caught it; None: it survived."""
    file = COPY / mutant.file
    source = file.read_text()
    tests = [located(test, COPY) for test in mutant.tests]
    file.write_text(applied(mutant, source))
    try:
        build(tests)
        for test in tests:
            well, said = run(command(test), UNIT_SECONDS if is_unit(test) else None)
            if not well:
                return failed(test, said)
        if whole:
            well, said = run(["make", "--no-print-directory", "test"])
            if not well:
                return failed(None, said)
        return None
    finally:
        file.write_text(source)


def check_unbroken(mutants: Sequence[Mutant]) -> None:
    tests = sorted({located(test, COPY) for mutant in mutants for test in mutant.tests})
    build(tests)
    for test in filter(is_unit, tests):
        well, said = run(command(test), UNIT_SECONDS)
        if not well:
            raise Broken(f"the unbroken copy fails in {failed(test, said)}:\n{said}")
    rest = [str(test) for test in tests if not is_unit(test)]
    if rest:
        well, said = run([*pytest(), "-n", str(2 * (os.cpu_count() or 1)), "--dist", "loadgroup", *rest])
        if not well:
            raise Broken(f"the unbroken copy fails in {failed(None, said)}:\n{said}")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these mutants")
    parser.add_argument("--list", action="store_true", help="say what they are, and do nothing")
    parser.add_argument("--whole", action="store_true", help="give survivors to all of make test")
    options = parser.parse_args(words)
    unknown = set(options.names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    mutants = [mutant for mutant in MUTANTS if not options.names or mutant.name in options.names]
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name}  {mutant.file}\n    {mutant.breaks}\n    {' '.join(mutant.tests)}")
        return 0
    begun = time.monotonic()
    refresh()
    try:
        check_unbroken(mutants)
    except Broken as error:
        print(error, file=sys.stderr)
        return 2
    print(f"the unbroken copy passes, after {time.monotonic() - begun:.0f} s", flush=True)
    caught = survived = broken = 0
    for mutant in mutants:
        begun = time.monotonic()
        try:
            by = hunt(mutant, options.whole)
        except Broken as error:
            broken += 1
            outcome = str(error)
        else:
            caught += by is not None
            survived += by is None
            outcome = f"caught by {by}" if by else "SURVIVED" + ("" if options.whole else " these tests")
        print(f"{mutant.name:26} {time.monotonic() - begun:5.0f} s  {outcome}", flush=True)
    print(f"{caught} of {len(mutants)} caught, {survived} survived" + (f", {broken} broken" if broken else ""))
    return 2 if broken else 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
