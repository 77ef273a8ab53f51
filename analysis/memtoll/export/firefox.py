# SPDX-License-Identifier: GPL-2.0
"""A profile for the Firefox profiler (profiler.firefox.com), in its processed format.

- each toll has a track: its sites one after the other, each as long as the time that it took; their order is that of
  their cost, and the track's times are no moments of the recording;
- each thread that had faults has one: its fault runs at their times, weighted by the bytes that they mapped.

What was traced, found and lost stands in the panel with the profile's information. The profiler reads all older
versions of its format: this is 61 (sources with the place where they begin); what came later is of no use here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..opening import Progress
from ..visible import visible
from .about import About
from .samples import MODULE_BITS, NOWHERE, OWNERS, PAGE, Place, samples, stacks
from .webtext import shown, write_json

if TYPE_CHECKING:
    from ..recording import Recording

VERSION: Final = 61
# Of the unprocessed format, which this never was.
GECKO_VERSION: Final = 31
LIBRARY: Final = 1  # type of a resource
TIMES: Final = "tracing-ms"  # weights of samples that are times
INTERVAL_MS: Final = 1
# A number for which JavaScript has 53 bits.
ADDRESS_MASK: Final = (1 << MODULE_BITS) - 1


class Columns:
    """A table: a list for each column, rows of the same length."""

    def __init__(self, *names: str) -> None:
        self.columns: dict[str, list[Any]] = {name: [] for name in names}
        self.length = 0

    def add(self, **values: Any) -> int:
        """A row; columns that are not named are null. Its number."""
        for name, column in self.columns.items():
            column.append(values.get(name))
        self.length += 1
        return self.length - 1

    def json(self) -> dict[str, Any]:
        return {**self.columns, "length": self.length}


class Builder:
    """What all threads share: every text, source, library, function, frame and node of the tree of stacks once."""

    def __init__(self) -> None:
        self.strings: dict[str, int] = {}
        self.libs: list[dict[str, Any]] = []
        self.known: dict[tuple[Any, ...], int] = {}
        self.whole: dict[tuple[Place, ...], int] = {}
        self.sources = Columns("id", "filename", "startLine", "startColumn", "sourceMapURL")
        self.resources = Columns("lib", "name", "host", "type")
        self.functions = Columns(
            "name", "isJS", "relevantForJS", "resource", "source", "lineNumber", "columnNumber"
        )  # fmt: skip
        self.frames = Columns(
            "address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol", "innerWindowID", "line",
            "column",
        )  # fmt: skip
        self.nodes = Columns("frame", "prefix")
        self.symbols = Columns("libIndex", "address", "name", "functionSize")

    def text(self, text: str) -> int:
        return self.strings.setdefault(visible(text), len(self.strings))

    def once(self, table: Columns, key: tuple[Any, ...], **values: Any) -> int:
        """The row of a table that has this key, made where there is none."""
        known = (id(table), *key)
        if known not in self.known:
            self.known[known] = table.add(**values)
        return self.known[known]

    def source(self, file: str) -> int:
        name = self.text(file)
        return self.once(self.sources, (name,), filename=name, startLine=1, startColumn=1)

    def library(self, module: str, build_id: str) -> int:
        """The number of its resource."""
        key = (id(self.resources), module, build_id)
        if key not in self.known:
            path, name = visible(module), visible(module.rpartition("/")[2])
            self.libs.append(
                {
                    "arch": "",
                    "name": name,
                    "path": path,
                    "debugName": name,
                    "debugPath": path,
                    "breakpadId": "",
                    "codeId": visible(build_id) or None,
                }
            )
            self.known[key] = self.resources.add(lib=len(self.libs) - 1, name=self.text(name), type=LIBRARY)
        return self.known[key]

    def node(self, place: Place, depth: int, prefix: int | None) -> int:
        """A line of a place below a node. depth: 0 is the function that all others of the place are inlined in."""
        function, file, line = place.lines[-1 - depth]
        resource = self.library(place.module, place.build_id) if place.module else -1
        name = self.text(shown(place, (function, file, line)))
        source = self.source(file) if file else None
        func = self.once(
            self.functions, (name, resource, source), name=name, isJS=False, relevantForJS=False, resource=resource,
            source=source,
        )  # fmt: skip
        address = place.offset & ADDRESS_MASK if place.module else -1
        frame = self.once(
            self.frames, (func, address, depth, line), address=address, inlineDepth=depth, category=0, subcategory=0,
            func=func, innerWindowID=0, line=line or None,
        )  # fmt: skip
        return self.once(self.nodes, (frame, prefix), frame=frame, prefix=prefix)

    def stack(self, places: tuple[Place, ...]) -> int:
        """The node of a stack, which is given leaf first."""
        if places not in self.whole:
            node: int | None = None
            for place in reversed(places):
                for depth in range(len(place.lines)):
                    node = self.node(place, depth, node)
            assert node is not None
            self.whole[places] = node
        return self.whole[places]

    def shared(self) -> dict[str, Any]:
        return {
            "stackTable": self.nodes.json(),
            "frameTable": self.frames.json(),
            "funcTable": self.functions.json(),
            "resourceTable": self.resources.json(),
            "nativeSymbols": self.symbols.json(),
            "sources": self.sources.json(),
            "stringArray": list(self.strings),
        }


def _thread(
    name: str, process: str, ids: tuple[str, int | str, bool], columns: dict[str, list[Any]], of: str
) -> dict[str, Any]:
    """ids: process, thread, whether it is the process's first; columns: stack, time, weight; of: what the weight is."""
    pid, tid, first = ids
    markers = ("data", "name", "startTime", "endTime", "phase", "category")
    return {
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "name": visible(name),
        "processName": visible(process),
        "isMainThread": first,
        "pid": pid,
        "tid": tid,
        "samples": {**columns, "weightType": of, "length": len(columns["stack"])},
        "markers": Columns(*markers).json(),
    }


def _tolls(rec: Recording, builder: Builder, owner: str, toll: str | None) -> list[dict[str, Any]]:
    by_toll: dict[str, dict[str, list[Any]]] = {}
    for each in samples(rec, owner, toll):
        if each.time_ns:
            columns = by_toll.setdefault(each.toll, {"stack": [], "time": [0.0], "weight": []})
            columns["stack"].append(builder.stack(each.stack))
            columns["weight"].append(each.time_ns / 1e6)
            columns["time"].append(columns["time"][-1] + each.time_ns / 1e6)
    threads = []
    for name in [name for name in rec.toll.index if name in by_toll]:
        columns = by_toll[name]
        columns["time"].pop()
        threads.append(_thread(name, f"toll {name}", (f"toll {name}", name, True), columns, TIMES))
    return threads


def _threads(
    rec: Recording, builder: Builder, owner: str, toll: str | None, progress: Progress | None
) -> list[dict[str, Any]]:
    found = stacks(rec)
    table = rec.faults if toll is None else rec.faults[rec.faults["toll"] == toll]
    table = table[["pid", "tid", "start_ns", "pages", "allocated_stack", "touched_stack"]]
    names = {int(pid): _name(comm) for pid, comm in rec.processes["comm"].items()}
    threads, done = [], 0
    for (pid, tid), rows in table.groupby(["pid", "tid"], sort=True):
        rows = rows.sort_values("start_ns", kind="stable")
        one, other = (rows[f"{each}_stack"].tolist() for each in OWNERS[:: 1 if owner == OWNERS[0] else -1])
        columns = {
            "stack": [builder.stack(found.get(first or second) or (NOWHERE,)) for first, second in zip(one, other)],
            "time": ((rows["start_ns"] - rec.origin_ns) / 1e6).tolist(),
            "weight": (rows["pages"] * PAGE).tolist(),
        }
        comm = names.get(int(pid), "")
        ids = (str(pid), int(tid), bool(pid == tid))
        threads.append(_thread(f"faults of {comm} {tid}", comm or f"process {pid}", ids, columns, "bytes"))
        done += len(rows)
        if progress:
            progress("writing fault runs", done, len(table))
    return threads


def _name(comm: Any) -> str:
    return comm if isinstance(comm, str) else ""


def _end_ms(about: About, threads: list[dict[str, Any]]) -> float:
    """Of the recording, or of the longest track where that is longer: the profiler shows nothing that is after it."""
    ends = [about.duration_s * 1e3]
    for each in threads:
        rows = each["samples"]
        if rows["length"]:
            ends.append(rows["time"][-1] + (rows["weight"][-1] if rows["weightType"] == TIMES else INTERVAL_MS))
    return max(ends)


def _meta(about: About, end_ms: float) -> dict[str, Any]:
    facts = [(key, value) for key, value in about.as_dict().items() if isinstance(value, (str, int, float))]
    facts += [(f"lost {name}", loss["count"]) for name, loss in about.losses.items()]
    facts += [(f"not captured {toll}", reason) for toll, reason in about.not_captured.items()]
    entries = [{"label": key, "format": "string", "value": visible(str(value))} for key, value in facts]
    return {
        "interval": INTERVAL_MS,
        "startTime": about.start_realtime_ns / 1e6,
        "profilingStartTime": 0,
        "profilingEndTime": end_ms,
        "processType": 0,
        "product": visible(about.command) or "memtoll",
        "oscpu": visible(about.kernel),
        "platform": "Linux",
        "importedFrom": f"memtoll {about.memtoll}",
        "stackwalk": 1,
        "debug": False,
        "version": GECKO_VERSION,
        "preprocessedProfileVersion": VERSION,
        "symbolicated": True,
        "symbolicationNotSupported": True,
        "usesOnlyOneStackType": True,
        "sourceCodeIsNotOnSearchfox": True,
        "keepProfileThreadOrder": True,
        "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}],
        "markerSchema": [],
        "extra": [{"label": f"memtoll: {visible(about.verdict)} {visible(about.note)}".rstrip(), "entries": entries}],
    }


def profile(
    rec: Recording, about: About, owner: str, toll: str | None, progress: Progress | None = None
) -> dict[str, Any]:
    """The profile's object: of one toll or of all (None)."""
    builder = Builder()
    threads = _tolls(rec, builder, owner, toll) + _threads(rec, builder, owner, toll, progress)
    return {
        "meta": _meta(about, _end_ms(about, threads)),
        "libs": builder.libs,
        "pages": [],
        "counters": [],
        "profilerOverhead": [],
        "shared": builder.shared(),
        "threads": threads or [_thread("nothing", "nothing", ("0", 0, True), _nothing(), "samples")],
        "profilingLog": {},
    }


def _nothing() -> dict[str, list[Any]]:
    """Of a recording without any toll: the profiler wants a thread."""
    return {"stack": [], "time": [], "weight": []}


def write(
    rec: Recording, about: About, path: Path, owner: str, toll: str | None, progress: Progress | None = None
) -> None:
    write_json(profile(rec, about, owner, toll, progress), path)
