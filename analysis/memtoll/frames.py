# SPDX-License-Identifier: GPL-2.0
"""What the DataFrames of a recording hold: one list, from which they are made and documented.

Units are in the names: *_s seconds, *_ns nanoseconds, *bytes bytes, share and *_share 0..1 of the
observed time, *pages pages of 4 KiB; start_s and end_s count from the recording's start. Figures
that the report's JSON has too are rounded as there: seconds to the nanosecond, shares to 1e-6.
dtypes: those of pandas; "Int64" and "float64" are missing (NA, NaN) where a figure is unknown or
was not captured, "int64" never is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# The vocabulary, in the order of the report. A recording's own list (toll_kind) goes first.
TOLLS: Final = (
    "zero.kernel", "zero.libc", "zero.app", "swap.in", "swap.out", "reclaim", "cow", "file.fault",
    "file.read", "fault.user", "fault.other", "alloc", "map",
    "copy.app", "compute",
)  # fmt: skip
FAMILIES: Final = (
    "zeroing", "swap", "cow", "file", "userfault", "other", "allocator", "mapping", "compute",
)  # fmt: skip
CALLS: Final = (
    "", "malloc", "calloc", "realloc", "reallocarray", "free", "posix_memalign", "aligned_alloc", "memalign",
    "mmap", "munmap", "mremap", "brk", "madvise",
)  # fmt: skip
AREAS: Final = ("", "anon", "heap", "stack", "arena", "library", "file", "shared", "device", "unknown")


@dataclass(frozen=True)
class Column:
    """One column: its name, dtype, unit and meaning, and the SQL it comes from.

    printed: rounded in the SQL, and to be read as the JSON shows it.
    """

    name: str
    dtype: str
    unit: str
    meaning: str
    sql: str = ""
    printed: bool = False


@dataclass(frozen=True)
class Frame:
    """One DataFrame: SQL after FROM, the last view it rests on, and its columns."""

    name: str
    meaning: str
    source: str
    columns: tuple[Column, ...]
    view: str = ""
    index: str = ""


def seconds(name: str, meaning: str, sql: str) -> Column:
    return Column(name, "float64", "s", meaning, f"ROUND(({sql}) / 1e9, 9)", printed=True)


def share(name: str, meaning: str, sql: str) -> Column:
    return Column(name, "float64", "0..1", meaning, f"ROUND({sql}, 6)", printed=True)


def number(name: str, unit: str, meaning: str, sql: str = "", dtype: str = "int64") -> Column:
    return Column(name, dtype, unit, meaning, sql or name)


def category(name: str, meaning: str, sql: str = "") -> Column:
    return Column(name, "category", "", meaning, sql or name)


def text(name: str, meaning: str, sql: str = "") -> Column:
    return Column(name, "string", "", meaning, sql or name)


UTC: Final = "datetime64[ns, UTC]"


def moment(which: str, meaning: str, sql: str, dtype: str = "int64") -> tuple[Column, Column]:
    """Two columns: nanoseconds of CLOCK_MONOTONIC, and seconds since the recording's start."""
    return (
        Column(f"{which}_ns", dtype, "ns", f"{meaning}, CLOCK_MONOTONIC", sql),
        Column(f"{which}_s", "float64", "s", f"{meaning}, since the recording's start", f"({sql} - :origin) / 1e9"),
    )


def wall(which: str, meaning: str, sql: str) -> Column:
    """The moment as a clock on the wall has it; NaT in recordings that do not know."""
    return Column(f"{which}_utc", UTC, "", f"{meaning}, wall-clock time", f"{sql} + :realtime")


STACK_JOINS: Final = (
    " LEFT JOIN temp.memtoll_stack a ON a.stack_id = {0}.allocated_stack"
    " LEFT JOIN temp.memtoll_stack t ON t.stack_id = {0}.touched_stack"
)

FRAMES: Final = (
    Frame(
        "toll",
        "The toll table: one row for each of the fifteen tolls, in the report's order.",
        "temp.toll ORDER BY position",
        (
            category("toll", "index: what is paid for"),
            category("family", "the family of the toll, as in the verdict"),
            seconds("time_s", "time it took", "time_ns"),
            share("share", "part of the observed time", "share"),
            share("share_low", "its lower 95 % bound", "low"),
            share("share_high", "its upper 95 % bound", "high"),
            number("count", "events", "faults, calls or CPU samples", dtype="Int64"),
            number("bytes", "bytes", "cleared, copied, brought in, asked for", dtype="Int64"),
            number("pages", "pages", "the same in pages, where it is of pages", dtype="Int64"),
            seconds("clear_s", "of time_s: the clearing proper", "clear_ns"),
            Column(
                "blocked_s",
                "float64",
                "s",
                "of time_s: asleep",
                "ROUND(blocked_ns / 1e9, 9)",
                printed=True,
            ),
            seconds("time_low_s", "lower 95 % bound of time_s", "low_ns"),
            seconds("time_high_s", "upper 95 % bound of time_s", "high_ns"),
            Column(
                "reread_factor",
                "float64",
                "1",
                "file.read: bytes read / different bytes",
                "reread_factor",
            ),
            text("not_captured", "why this run could not see it; NA where it did"),
            Column(
                "bytes_estimated",
                "boolean",
                "",
                "zero.app, copy.app: bytes go by their time; NA where it was not captured",
                "bytes_estimated",
            ),
            number("bytes_low", "bytes", "bytes at least: an estimate's lower bound", dtype="Int64"),
            number("bytes_high", "bytes", "bytes at most", dtype="Int64"),
        ),
        view="toll",
        index="toll",
    ),
    Frame(
        "families",
        "Tolls by family, largest first; the first one is the verdict's.",
        "temp.family ORDER BY rank",
        (
            category("family", "index"),
            seconds("time_s", "time it took", "time_ns"),
            share("share", "part of the observed time", "share"),
            share("share_low", "lower 95 % bound", "low"),
            share("share_high", "upper 95 % bound", "high"),
            category("main_toll", "its largest toll"),
        ),
        view="family",
        index="family",
    ),
    Frame(
        "sites",
        "Tolls by both owners: where it was allocated and where it was touched; most expensive first.",
        "temp.sites s" + STACK_JOINS.format("s") + " ORDER BY s.rank",
        (
            number("rank", "1", "index: 1 is the most expensive"),
            category("toll", "what is paid for", "s.toll"),
            category("call", "the function that made the block, for map the system call; '' unknown", "s.call"),
            seconds("time_s", "time it took", "s.time_ns"),
            share("share", "part of the observed time", "s.share"),
            number("bytes", "bytes", "cleared, copied, brought in, asked for", "s.bytes"),
            number("count", "events", "faults, calls or CPU samples", "s.count"),
            Column(
                "bytes_at_least",
                "bool",
                "",
                "bytes is only what faults prove (unknown allocator)",
                "COALESCE(s.known_clearing = 0, 0)",
            ),
            text("allocated_at", "functions from the root to the allocation call, 'main;load;calloc'", "a.text"),
            text("touched_at", "functions from the root to the code that touched (sampled: that ran)", "t.text"),
            category(
                "allocated_place",
                "the allocation's caller as the verdict names it",
                "CASE WHEN s.toll = 'map' OR s.call = 'mmap' THEN a.touched_place ELSE a.allocated_place END",
            ),
            category("touched_place", "the touching code as the verdict names it", "t.touched_place"),
            Column(
                "area",
                "category",
                "",
                "faults outside of allocations: kind of memory, and path of a file",
                "s.area",
            ),
            number("allocated_stack", "id", "for rec.stack(); 0: unknown", "s.allocated_stack"),
            number("touched_stack", "id", "for rec.stack(); 0: unknown", "s.touched_stack"),
        ),
        view="sites",
        index="rank",
    ),
    Frame(
        "classes",
        "Faults by class, with the price of one.",
        "(SELECT class, toll, SUM(faults) AS faults, SUM(pages) AS pages, SUM(cpu_ns) AS cpu_ns,"
        " SUM(blocked_ns) AS blocked_ns FROM temp.process_fault_time GROUP BY class, toll) f"
        " JOIN (SELECT class AS name, mean_ns, error_ns, timed_faults, source FROM temp.fault_price) p"
        " ON p.name = f.class ORDER BY f.cpu_ns + f.blocked_ns DESC, class",
        (
            category("class", "index: class of fault, as table fault_class of the recording lists them"),
            category("toll", "the toll it belongs to", "f.toll"),
            number("count", "faults", "faults of the class", "f.faults"),
            number("pages", "pages", "pages they mapped"),
            number("bytes", "bytes", "the same in bytes", "f.pages * 4096"),
            seconds("time_s", "their time", "f.cpu_ns + f.blocked_ns"),
            seconds("blocked_s", "of it: asleep", "f.blocked_ns"),
            number("mean_ns", "ns", "processor time of one", "p.mean_ns", "float64"),
            number("mean_error_ns", "ns", "95 % bound of the mean", "p.error_ns", "float64"),
            number("timed_count", "faults", "faults whose time was measured", "p.timed_faults"),
            category("price", "'timed', 'calibrated' or 'minor mean'", "p.source"),
        ),
        view="process_fault_time",
        index="class",
    ),
    Frame(
        "faults",
        "Runs of faults: one row is one sweep of one thread over adjacent pages. Bounded while"
        " recording: loss runs_unstored counts runs that only rec.classes and rec.sites know.",
        "",
        (
            number("slice", "1", "number of the slice", dtype="int32"),
            number("pid", "1", "process", dtype="int32"),
            number("tid", "1", "thread", dtype="int32"),
            category("class", "class of fault"),
            category("toll", "the toll it belongs to"),
            number("address", "address", "of the first page", dtype="uint64"),
            number("pages", "pages", "pages the run maps, upwards from address"),
            number("faults", "faults", "faults in it"),
            *moment("start", "first fault", "first_ns"),
            *moment("end", "last fault", "last_ns"),
            Column(
                "call",
                "category",
                "",
                "function that made the block; '' unknown",
                "allocated_call",
            ),
            Column("area", "category", "", "kind of memory; '' unknown", "area"),
            category("allocated_at", "functions from the root to the allocation call; NA: unknown"),
            category("touched_at", "functions from the root to the touching code; NA: unknown"),
            number("allocated_stack", "id", "for rec.stack(); 0: unknown"),
            number("touched_stack", "id", "for rec.stack(); 0: unknown"),
        ),
    ),
    Frame(
        "allocations",
        "Calls of the allocator by function and call site, most bytes first.",
        "temp.allocation x LEFT JOIN temp.memtoll_stack a ON a.stack_id = x.stack_id"
        " ORDER BY x.bytes DESC, x.calls DESC, x.call, x.stack_id",
        (
            category("call", "allocator function", "x.call"),
            number("calls", "calls", "all calls", "x.calls"),
            number("failed", "calls", "of them: without a block", "x.failed"),
            number("bytes", "bytes", "asked for", "x.bytes"),
            number("mmapped_calls", "calls", "of them: got a mapping of their own", "x.mmapped_calls"),
            number("nested_calls", "calls", "made by the allocator itself; not in calls", "x.nested_calls"),
            number("freed", "blocks", "blocks freed; NA where not all were followed", "x.freed", "Int64"),
            number("live_bytes", "bytes", "not freed at the end; NA if not all were followed", "x.live_bytes", "Int64"),
            number("followed", "blocks", "blocks of at least min_size_bytes", "x.followed"),
            number("never_used_bytes", "bytes", "freed without a fault ever in them", "x.never_used_bytes"),
            Column(
                "estimated",
                "bool",
                "",
                "the overhead budget left calls unwatched: calls and bytes are estimates",
                "x.estimated",
            ),
            Column(
                "calls_error",
                "int64",
                "calls",
                "95 % bound of calls; 0: exact",
                "x.calls_error",
            ),
            Column(
                "bytes_error",
                "int64",
                "bytes",
                "95 % bound of bytes; 0: exact",
                "x.bytes_error",
            ),
            Column(
                "at_least",
                "bool",
                "",
                "calls of small blocks that the threads' caches answered are not among them",
                "x.at_least",
            ),
            text("allocated_at", "functions from the root to the call, 'main;load;calloc'", "a.text"),
            category("allocated_place", "the caller as the verdict names it", "a.allocated_place"),
            number("allocated_stack", "id", "for rec.stack(); 0: unknown", "x.stack_id"),
        ),
        view="allocation",
    ),
    Frame(
        "sampled",
        "Blocks below min_size_bytes as --sample estimates them, by call site, most bytes first. Empty where"
        " none were sampled.",
        "temp.sample_estimate x LEFT JOIN temp.memtoll_stack a ON a.stack_id = x.stack_id"
        " ORDER BY x.bytes DESC, x.call, x.stack_id",
        (
            category("call", "allocator function", "x.call"),
            number("chosen", "blocks", "blocks the estimate rests on", "x.chosen"),
            number("bytes", "bytes", "asked for", "x.bytes"),
            number("bytes_error", "bytes", "95 % bound of it", "x.bytes_error"),
            number("live_bytes", "bytes", "not freed at the end; NA: frees were missed", "x.live_bytes", "Int64"),
            number("live_bytes_error", "bytes", "95 % bound of it", "x.live_bytes_error", "Int64"),
            text("allocated_at", "functions from the root to the call, 'main;load;malloc'", "a.text"),
            category("allocated_place", "the caller as the verdict names it", "a.allocated_place"),
            number("allocated_stack", "id", "for rec.stack()", "x.stack_id"),
        ),
        view="sample_estimate",
    ),
    Frame(
        "duty_cycle",
        "How much of the recording's time each allocator function was watched. Empty where the recording has no"
        " such view: then always.",
        "temp.duty_cycle x ORDER BY x.call",
        (
            category(
                "call",
                "index: allocator function; read_other: read(2) of sockets; syscall: mapping calls and reads",
                "x.call",
            ),
            number("share", "0..1", "of the time; below 1 its figures are estimates", "ROUND(x.share, 4)", "float64"),
            number("error", "1", "95 % bound of the factor they are scaled by, relative", "x.error", "float64"),
        ),
        view="duty_cycle",
        index="call",
    ),
    Frame(
        "timeline",
        "Each captured toll in each slice, rows without any included. Sums over the slices are those of rec.toll:"
        " what the recording has by slice is priced alike, and what it has only as a whole (clamped"
        " differences, compute) is divided in proportion.",
        "temp.memtoll_timeline ORDER BY slice, position",
        (
            number("slice", "1", "number of the slice", dtype="int32"),
            *moment("start", "start of the slice", "start_ns"),
            *moment("end", "end of the slice", "end_ns"),
            wall("start", "start of the slice", "start_ns"),
            category("toll", "what is paid for"),
            number("time_s", "s", "time it took in the slice", "time_ns / 1e9", "float64"),
            number("count", "events", "faults, calls or CPU samples"),
            number("bytes", "bytes", "cleared, copied, brought in, asked for"),
            number("pages", "pages", "the same in pages, where it is of pages"),
        ),
        view="sites",
    ),
    Frame(
        "processes",
        "The processes that were traced.",
        "process p LEFT JOIN temp.process_observed o ON o.pid = p.pid"
        " LEFT JOIN (SELECT pid, SUM(minor_faults) AS minor, SUM(major_faults) AS major FROM process_slice"
        " GROUP BY pid) k ON k.pid = p.pid"
        " LEFT JOIN (SELECT pid, toll, MAX(time_ns) FROM temp.process_toll WHERE time_ns > 0 GROUP BY pid) x"
        " ON x.pid = p.pid ORDER BY p.pid",
        (
            number("pid", "1", "index", "p.pid"),
            number("parent_pid", "1", "its parent", "p.parent_pid", "Int64"),
            text("comm", "name, at most 15 characters", "p.comm"),
            text("command", "command line", "p.command"),
            text("executable", "path of the program", "p.executable"),
            category("role", "'target' (named by the user) or 'child' (followed)", "p.role"),
            *moment("start", "when tracing of it began", "p.start_ns"),
            *moment("end", "when it exited; missing: it goes on", "p.end_ns", "Int64"),
            wall("start", "when tracing of it began", "p.start_ns"),
            number("exit_code", "1", "as wait(2) has it", "p.exit_code", "Int64"),
            seconds("observed_s", "on the CPU or asleep in a fault, overhead taken out", "COALESCE(o.observed_ns, 0)"),
            seconds("cpu_s", "on the CPU, overhead included", "COALESCE(o.cpu_ns, 0)"),
            seconds("blocked_s", "asleep in faults, reclaim and file reads", "COALESCE(o.blocked_ns, 0)"),
            seconds("overhead_s", "of cpu_s: the probes'", "COALESCE(o.overhead_ns, 0)"),
            number("minor_faults", "faults", "the kernel's own count", "COALESCE(k.minor, 0)"),
            number("major_faults", "faults", "the kernel's own count", "COALESCE(k.major, 0)"),
            category("largest_toll", "its most expensive toll, compute excepted", "x.toll"),
            Column(
                "memory_cgroup",
                "string",
                "",
                "path of its memory cgroup",
                "p.memory_cgroup",
            ),
            Column(
                "container",
                "string",
                "",
                "what its container is called, with pod and namespace; missing: it is in none",
                "(SELECT c.title FROM container c WHERE c.id = p.container)",
            ),
            number("pid_inside", "1", "its number there", "p.pid_inside", "Int64"),
        ),
        view="process_observed",
        index="pid",
    ),
    Frame(
        "process_tolls",
        "Tolls of each process; compute is what they leave.",
        "temp.process_toll ORDER BY pid, time_ns DESC",
        (
            number("pid", "1", "process"),
            category("toll", "what is paid for"),
            seconds("time_s", "time it took", "time_ns"),
            seconds("error_s", "95 % bound of it", "error_ns"),
            number("count", "events", "faults, calls or CPU samples"),
            number("bytes", "bytes", "cleared, copied, brought in, asked for"),
            number("pages", "pages", "the same in pages, where it is of pages"),
            seconds("clear_s", "of time_s: the clearing proper", "clear_ns"),
        ),
        view="process_toll",
    ),
    Frame(
        "process_timeline",
        "The kernel's own figures of each process in each slice.",
        "process_slice p JOIN slice s ON s.slice = p.slice ORDER BY p.slice, p.pid",
        (
            number("slice", "1", "number of the slice", "p.slice", "int32"),
            *moment("start", "start of the slice", "s.start_ns"),
            *moment("end", "end of the slice", "s.end_ns"),
            wall("start", "start of the slice", "s.start_ns"),
            number("pid", "1", "process", "p.pid", "int32"),
            number("cpu_s", "s", "processor time in the slice", "p.cpu_ns / 1e9", "float64"),
            number("minor_faults", "faults", "in the slice", "p.minor_faults"),
            number("major_faults", "faults", "in the slice", "p.major_faults"),
            Column(
                "rss_bytes",
                "Int64",
                "bytes",
                "resident at the slice's end",
                "p.rss_bytes",
            ),
            Column(
                "swap_bytes",
                "Int64",
                "bytes",
                "on swap at the slice's end",
                "p.swap_bytes",
            ),
        ),
    ),
    Frame(
        "access",
        "How the pages of an allocation site or, outside of allocations, of an area were used. Empty where the"
        " recording has no such table.",
        "access x LEFT JOIN temp.memtoll_stack a ON a.stack_id = x.allocated_stack"
        " ORDER BY x.in_pages DESC, x.first_pages DESC, x.pid, x.call, x.allocated_stack, x.area, x.area_name",
        (
            number("pid", "1", "process", "x.pid"),
            category("call", "function that made the block; '' outside of allocations", "x.call"),
            category("area", "kind of memory; '' of an allocation site", "x.area"),
            text("area_name", "path of the file or shared area", "x.area_name"),
            number("first_pages", "pages", "first touched", "x.first_pages"),
            number("first_sequential_pages", "pages", "of them, in a sweep", "x.first_sequential_pages"),
            number("in_pages", "pages", "faults on swapped pages", "x.in_pages"),
            number("in_sequential_pages", "pages", "of them, in a sweep", "x.in_sequential_pages"),
            number("distinct_pages", "pages", "different pages that came back", "x.distinct_pages"),
            number("max_returns", "1", "how often the page came back that did so most", "x.max_returns"),
            number("untracked_pages", "pages", "of in_pages: page not followed", "x.untracked_pages"),
            text("allocated_at", "functions from the root to the call", "a.text"),
            category(
                "allocated_place",
                "the caller as the verdict names it",
                "CASE x.call WHEN 'mmap' THEN a.touched_place ELSE a.allocated_place END",
            ),
            number("allocated_stack", "id", "for rec.stack(); 0 outside of allocations", "x.allocated_stack"),
        ),
    ),
    Frame(
        "access_patterns",
        "The same over all processes, with the pattern. Empty where the recording has no such view.",
        "temp.access_pattern x LEFT JOIN temp.memtoll_stack a ON a.stack_id = x.allocated_stack ORDER BY x.rank",
        (
            number("rank", "1", "index: as the report orders them", "x.rank"),
            category("call", "function that made the block; '' outside of allocations", "x.call"),
            category("area", "kind of memory; '' of an allocation site", "x.area"),
            text("area_name", "path of the file or shared area", "x.area_name"),
            category("pattern", "how its pages were gone over, in one word", "x.pattern"),
            number("first_pages", "pages", "first touched", "x.first_pages"),
            number("in_pages", "pages", "faults on swapped pages", "x.in_pages"),
            number("in_sequential_pages", "pages", "of them, in a sweep", "x.in_sequential_pages"),
            number("distinct_pages", "pages", "different pages that came back", "x.distinct_pages"),
            Column("returns", "float64", "1", "in_pages / distinct_pages", "ROUND(x.returns, 3)", printed=True),
            number("max_returns", "1", "how often the page came back that did so most", "x.max_returns"),
            number("untracked_pages", "pages", "of in_pages: page not followed", "x.untracked_pages"),
            text("allocated_at", "functions from the root to the call", "a.text"),
            category(
                "allocated_place",
                "the caller as the verdict names it",
                "CASE x.call WHEN 'mmap' THEN a.touched_place ELSE a.allocated_place END",
            ),
            number("allocated_stack", "id", "for rec.stack(); 0 outside of allocations", "x.allocated_stack"),
        ),
        view="access_pattern",
        index="rank",
    ),
    Frame(
        "files",
        "Files that were read, the one that took most time first. Empty where reads were not recorded.",
        "temp.files x LEFT JOIN temp.file_reuse r ON r.file = x.file ORDER BY x.rank",
        (
            number("rank", "1", "index: as the report orders them", "x.rank"),
            number("file", "id", "its number in this recording: as in rec.miss_ratio", "x.file"),
            text("path", "from the root of the mounts", "x.path"),
            category("kind", "file or block device", "x.kind"),
            number("device", "id", "of the file system: major << 20 | minor", "x.dev"),
            number("inode", "id", "its number there", "x.inode"),
            number("file_bytes", "bytes", "its size when first read", "x.file_bytes", dtype="Int64"),
            number("calls", "calls", "reads", "x.calls"),
            number("bytes", "bytes", "read", "x.bytes"),
            seconds("time_s", "on the CPU and asleep", "x.time_ns"),
            seconds("blocked_s", "of it: asleep", "x.blocked_ns"),
            number("direct_bytes", "bytes", "read past the page cache (O_DIRECT)", "x.direct_bytes"),
            number(
                "cached_bytes",
                "bytes",
                "found in the page cache, less what was read ahead for it",
                "x.cached_bytes",
            ),
            number("filled_bytes", "bytes", "brought into the page cache, read-ahead too", "x.filled_bytes"),
            Column("reread_factor", "float64", "1", "bytes read / different bytes", "r.reread_factor"),
            Column("reread_low", "float64", "1", "its lower 95 % bound: blocks may be sampled", "r.low"),
            Column("reread_high", "float64", "1", "its upper 95 % bound", "r.high"),
            Column("different_bytes", "float64", "bytes", "different ones, in blocks", "r.different_bytes"),
        ),
        view="files",
        index="rank",
    ),
    Frame(
        "miss_ratio",
        "What a cache of each size would miss of the reads and swap-ins that were seen. Hits in a cache of the"
        " program's own are not among them. Empty where reads were not recorded.",
        "temp.miss_ratio x LEFT JOIN file f ON f.file = x.file AND x.file > 0"
        " ORDER BY x.subject, x.file, x.cache_bytes",
        (
            category("subject", "'file': reads of one; 'files': of all; 'swap': swap-ins", "x.subject"),
            number("file", "id", "as in rec.files; 0: all", "x.file"),
            text("path", "of the file; '' for all", "COALESCE(f.path, '')"),
            number("cache_bytes", "bytes", "size of an LRU cache; of swap, of memory", "x.cache_bytes"),
            Column("miss_ratio", "float64", "1", "share of the uses that it would miss", "x.miss_ratio"),
            Column("error", "float64", "1", "relative 95 % error of sampling; 0: none", "x.error"),
        ),
        view="miss_ratio",
    ),
    Frame(
        "giveback",
        "Memory given back to the kernel and got again, by process and by the call that gave it back; most"
        " expensive first. Empty where the recording has no such view.",
        "temp.giveback_site x LEFT JOIN temp.memtoll_stack g ON g.stack_id = x.gave_stack"
        " LEFT JOIN temp.memtoll_stack a ON a.stack_id = x.got_stack ORDER BY x.rank",
        (
            number("rank", "1", "index: 1 is the most expensive", "x.rank"),
            number("pid", "1", "process", "x.pid"),
            category(
                "how",
                "munmap, brk, dontneed or free (madvise), fixed (a mapping over it), heap (of an arena),"
                " stack and stack_unmapped (of a thread)",
                "x.how",
            ),
            category("call", "allocator function that gave it back; '' the program itself", "x.gave_call"),
            category("got_call", "function that got most of it again; '' it was only touched", "x.got_call"),
            category("allocator", "kind of allocator that gave it back; '' none", "x.allocator"),
            number("calls", "calls", "that gave back", "x.calls"),
            number("gave_bytes", "bytes", "given back: pages that were in use", "x.gave_bytes"),
            number("again_bytes", "bytes", "of them, faulted in again", "x.again_bytes"),
            number("twice_bytes", "bytes", "of them, by the memset in calloc: cleared twice", "x.twice_bytes"),
            number("again_faults", "faults", "that brought pages back", "x.again_faults"),
            number("largest_bytes", "bytes", "the longest range that one call gave back", "x.largest_bytes"),
            number("span_bytes", "bytes", "how far such memory rose and fell within a slice", "x.span_bytes"),
            Column(
                "gave_bytes_per_s", "float64", "bytes/s", "given back", "ROUND(x.gave_bytes_per_s, 1)", printed=True
            ),
            Column(
                "again_bytes_per_s", "float64", "bytes/s", "got again", "ROUND(x.again_bytes_per_s, 1)", printed=True
            ),
            seconds("again_s", "the faults that brought it back", "x.again_ns"),
            seconds("gave_s", "the calls that gave it back", "x.gave_ns"),
            text("gave_at", "functions from the root to the call that gave it back", "g.text"),
            text("got_at", "functions from the root to the call that got it, or the code that touched", "a.text"),
            category(
                "gave_place",
                "the caller as the verdict names it",
                "CASE x.gave_call WHEN '' THEN g.touched_place ELSE g.allocated_place END",
            ),
            category(
                "got_place",
                "the caller, or the touching code, as the verdict names it",
                "CASE WHEN x.got_call IN ('', 'mmap') THEN a.touched_place ELSE a.allocated_place END",
            ),
            number("gave_stack", "id", "for rec.stack()", "x.gave_stack"),
            number("got_stack", "id", "for rec.stack(); 0: nothing came again", "x.got_stack"),
        ),
        view="giveback_site",
        index="rank",
    ),
    Frame(
        "latency",
        "How long calls of the allocator take: the number of calls between two bounds, by function and call site."
        " Wall time between the probes, less their own calibrated part. Empty for recordings of earlier versions.",
        "latency l LEFT JOIN temp.memtoll_stack a ON a.stack_id = l.stack_id"
        " ORDER BY l.call, l.stack_id, l.pid, l.low_ns",
        (
            number("pid", "1", "process", "l.pid"),
            category("call", "function of the allocator", "l.call"),
            number("low_ns", "ns", "the calls took at least this", "l.low_ns"),
            number("high_ns", "ns", "and less than this; NA: no upper bound", "l.high_ns", dtype="Int64"),
            number("count", "calls", "in between", "l.calls"),
            text("allocated_at", "functions from the root to the call", "a.text"),
            category("allocated_place", "the caller as the verdict names it", "a.allocated_place"),
            number("allocated_stack", "id", "for rec.stack()", "l.stack_id"),
        ),
        view="toll_kind",
    ),
    Frame(
        "latencies",
        "The same by function: quantiles, the longest call, and what all calls together spent their time in."
        " Empty where not recorded.",
        "temp.latency_call ORDER BY wall_ns DESC, call",
        (
            category("call", "index: function of the allocator"),
            number("count", "calls", "calls seen and timed", "calls"),
            *(
                Column(name, "float64", "ns", f"{said} of the calls took less", f"ROUND({name}, 1)", printed=True)
                for name, said in (("p50_ns", "half"), ("p90_ns", "90 %"), ("p99_ns", "99 %"), ("p999_ns", "99.9 %"))
            ),
            number("max_ns", "ns", "the longest call (without a record of its own: the upper bound of its bucket)"),
            Column(
                "resolution_ns",
                "float64",
                "ns",
                "less than this does not differ from 0",
                "ROUND(resolution_ns, 1)",
                printed=True,
            ),
            seconds("wall_s", "all calls together: the sum of the next five", "wall_ns"),
            seconds("own_s", "on the CPU in the allocator itself, its clearing included", "own_ns"),
            seconds("fault_s", "in faults", "fault_ns"),
            seconds("map_s", "in mapping calls", "map_ns"),
            seconds("lock_s", "waiting for locks (futex)", "lock_ns"),
            seconds("off_s", "off the CPU otherwise: preempted, or asleep in faults", "off_ns"),
            number("faults", "faults", "inside"),
            number("lock_waits", "waits", "for locks"),
        ),
        view="latency_call",
        index="call",
    ),
    Frame(
        "outliers",
        "Single calls of the allocator that took far longer than their thread's calls of that function do, the"
        " longest first, those that were only preempted last. Empty where not recorded.",
        "temp.outlier_cause o LEFT JOIN temp.memtoll_stack a ON a.stack_id = o.stack_id ORDER BY o.rank",
        (
            number("rank", "1", "index", "o.rank"),
            number("pid", "1", "process", "o.pid"),
            number("tid", "1", "thread", "o.tid"),
            category("call", "function of the allocator", "o.call"),
            category("cause", "what took most of it: see rec.query on view outlier_cause", "o.cause"),
            Column("inferred", "bool", "", "the cause is an inference, not an observation", "o.inferred"),
            *moment("start", "its start", "o.start_ns"),
            wall("start", "its start", "o.start_ns"),
            number("asked_bytes", "bytes", "asked; 0 of free", "o.size_bytes"),
            number("wall_ns", "ns", "it took, the probes' part taken out", "o.wall_ns"),
            number("cpu_ns", "ns", "of it on the CPU", "o.cpu_ns"),
            number("median_ns", "ns", "running median of its thread's calls of the function", "o.median_ns"),
            number("frees", "calls", "frees by its thread since that last asked for 1001 bytes or more", "o.frees"),
            number("cleared_bytes", "bytes", "of calloc's memset", "o.cleared_bytes"),
            number("zero_faults", "faults", "first touches inside", "o.zero_faults"),
            number("swap_faults", "faults", "on swapped pages inside", "o.swap_faults"),
            number("other_faults", "faults", "of files and copies inside", "o.other_faults"),
            number(
                "map_calls",
                "calls",
                "mapping system calls inside",
                "o.mmap_calls + o.munmap_calls + o.mremap_calls + o.brk_calls + o.madvise_calls",
            ),
            number("lock_waits", "waits", "for locks inside", "o.lock_waits"),
            *(
                Column(f"{name}_ns", "float64", "ns", meaning, f"ROUND({sql}, 1)", printed=True)
                for name, meaning, sql in (
                    ("touch", "of wall_ns: first touches", "o.touch_part_ns"),
                    ("swap", "of wall_ns: faults on swapped pages", "o.swap_part_ns"),
                    ("other_fault", "of wall_ns: other faults", "o.other_part_ns"),
                    ("map", "of wall_ns: mapping calls", "o.map_ns"),
                    ("lock", "of wall_ns: waiting for locks", "o.lock_ns"),
                    ("off", "of wall_ns: off the CPU otherwise", "o.off_part_ns"),
                    ("own", "of wall_ns: on the CPU in the allocator itself", "o.cpu_part_ns"),
                )
            ),
            number("samples", "samples", "CPU samples that saw such calls in malloc_consolidate", "o.samples"),
            text("allocated_at", "functions from the root to the call", "a.text"),
            category("allocated_place", "the caller as the verdict names it", "a.allocated_place"),
            number("allocated_stack", "id", "for rec.stack()", "o.stack_id"),
        ),
        view="outlier_cause",
        index="rank",
    ),
    Frame(
        "thresholds",
        "glibc's mmap_threshold, trim_threshold and top_pad as they changed, or as more became known of them;"
        " oldest first. Empty where the recording has no such table.",
        "threshold x LEFT JOIN temp.memtoll_stack a ON a.stack_id = x.stack_id ORDER BY x.time_ns, x.rowid",
        (
            *moment("time", "when it changed, or was known", "x.time_ns"),
            wall("time", "when it changed, or was known", "x.time_ns"),
            number("pid", "1", "process", "x.pid"),
            category("name", "mmap_threshold, trim_threshold or top_pad", "x.name"),
            number("low_bytes", "bytes", "it is at least this", "x.low_bytes"),
            number("high_bytes", "bytes", "and at most this; NA: not known", "x.high_bytes", "Int64"),
            category("how", "default, tunable, inherited, freed, mapped, grew, trimmed or read", "x.how"),
            category("call", "allocator function that showed or changed it; '' none", "x.call"),
            text("changed_at", "functions from the root to that call", "a.text"),
            category("changed_place", "the caller as the verdict names it", "a.allocated_place"),
            number("stack_id", "id", "for rec.stack(); 0: none", "x.stack_id"),
        ),
    ),
    Frame(
        "losses",
        "Everything that was not seen or not stored, by name; all that this version knows.",
        "temp.losses ORDER BY name",
        (
            text("name", "index"),
            number("count", "events", "how many"),
            number(
                "share",
                "0..1",
                "part of its kind (NaN where it has none)",
                "CASE WHEN measure IS NOT NULL THEN share END",
                "float64",
            ),
            category("measure", "what kind: fault, call, map, block, mapping, sample, process, walk, event, any"),
            Column(
                "exceeds",
                "bool",
                "",
                "beyond the limit of 1 %: `memtoll record` ends with status 4",
                "COALESCE(exceeds, 0)",
            ),
            text("meaning", "what was lost"),
            text("remedy", "what to do"),
        ),
        view="losses",
        index="name",
    ),
    Frame(
        "checks",
        "Our counts against the kernel's own.",
        "temp.checks ORDER BY position",
        (
            text("name", "index"),
            number("ours", "events", "counted by the probes"),
            number("kernel", "events", "counted by the kernel"),
            number("difference", "events", "ours - kernel"),
            Column("ok", "bool", "", "they agree, within 1 % or 3", "ok"),
        ),
        view="checks",
        index="name",
    ),
    Frame(
        "overhead",
        "What the probes cost, by probe. attrs: limit_pct (None: no limit), why (it is above it; '' where not),"
        " estimated_pct, error_pct, source, hits, held_s (how long at least processes of a command were held, None: it"
        " was no command).",
        "(SELECT probe FROM price UNION SELECT probe FROM temp.probe_overhead) n"
        " LEFT JOIN price p ON p.probe = n.probe"
        " LEFT JOIN (SELECT probe, SUM(hits) AS hits, MAX(hit_ns) AS hit_ns, SUM(overhead_ns) AS overhead_ns,"
        " SUM(error_ns) AS error_ns FROM temp.probe_overhead GROUP BY probe) o ON o.probe = n.probe"
        " ORDER BY n.probe",
        (
            text("probe", "index", "n.probe"),
            number("hits", "hits", "how often it was hit", "COALESCE(o.hits, 0)"),
            Column(
                "ns_per_hit",
                "float64",
                "ns",
                "calibrated price of a hit",
                "ROUND(COALESCE(p.hit_ns, o.hit_ns), 1)",
                printed=True,
            ),
            seconds("time_s", "what it added to the target", "COALESCE(o.overhead_ns, 0)"),
            seconds("error_s", "95 % bound of it", "COALESCE(o.error_ns, 0)"),
        ),
        view="overhead",
        index="probe",
    ),
    Frame(
        "stacks",
        "Every stack as text.",
        "stack s LEFT JOIN temp.memtoll_stack a ON a.stack_id = s.stack_id ORDER BY s.stack_id",
        (
            number("stack_id", "id", "index; for rec.stack()", "s.stack_id"),
            number("pid", "1", "process it was first seen in", "s.pid"),
            category("how", "how it was unwound", "s.how"),
            Column("complete", "bool", "", "it reached the thread's start, as far as can be known", "s.complete"),
            text("text", "functions from the root to the leaf, 'main;load;calloc'", "a.text"),
            category("allocated_place", "the caller of its leaf, as the verdict names it", "a.allocated_place"),
            category("touched_place", "its code, as the verdict names it", "a.touched_place"),
        ),
        index="stack_id",
    ),
    Frame(
        "stack_frames",
        "Every line of every stack, leaf first.",
        "stack_line l ORDER BY l.stack_id, l.depth",
        (
            number("stack_id", "id", "the stack", "l.stack_id"),
            number("depth", "1", "0 is the leaf", "l.depth"),
            text("function", "'' where unknown", "l.function"),
            category("module", "path of the file the code came from", "l.module"),
            text("file", "source file; '' where unknown", "l.file"),
            number("line", "1", "source line; 0 where unknown", "l.line"),
            category("kind", "native, python, ruby, php, javascript, java, kernel or jit", "l.kind"),
            text("place", "file:line or module+offset", "l.place"),
        ),
    ),
    Frame(
        "system",
        "Counters of the whole machine, /proc/vmstat: differences over the recording.",
        "system_counter ORDER BY name",
        (text("name", "index: the kernel's name"), number("value", "1", "difference")),
        index="name",
    ),
)

BY_NAME: Final = {frame.name: frame for frame in FRAMES}
