# SPDX-License-Identifier: GPL-2.0
"""A trace for Perfetto (ui.perfetto.dev, trace_processor): when what happened, by thread.

- each thread has a track of fault runs ("faults") and one of runs on swapped pages ("swap-ins"):
  a slice from the first to the last fault of the run, with class, toll, address, pages, both stacks;
  runs that overlap get further tracks of the same name;
- each process has counters: stalls (time asleep in faults and in reclaim, by slice: the recording has
  them by process, not by thread), resident memory, swap;
- each toll has a counter over time, in milliseconds per second;
- a slice over the whole recording says the verdict, and what was lost.

Times are the recording's CLOCK_MONOTONIC; the wall clock stands beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from ..extras import need
from ..opening import Progress
from ..visible import visible
from .about import About

if TYPE_CHECKING:
    from ..recording import Recording

# One writer, one sequence: names and texts are sent once and then referred to by number.
SEQUENCE: Final = 1
ROWS: Final = 65_536
SWAP_IN: Final = "swap.in"
# TracePacket.packet is field 1 of Trace, with a length before it.
PACKET_TAG: Final = b"\x0a"


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Tracks:
    """Where the next slice of a name goes: on the first of its tracks that is free at its start."""

    def __init__(self) -> None:
        self.lanes: list[tuple[int, int]] = []  # (uuid, busy until)

    def lane(self, start_ns: int, end_ns: int) -> int | None:
        """The uuid of a free track, now busy; None: there has to be another one."""
        for index, (uuid, until) in enumerate(self.lanes):
            if until <= start_ns:
                self.lanes[index] = (uuid, max(end_ns, start_ns + 1))
                return uuid
        return None

    def add(self, uuid: int, start_ns: int, end_ns: int) -> None:
        self.lanes.append((uuid, max(end_ns, start_ns + 1)))


class Writer:
    """A trace under construction, written packet by packet."""

    def __init__(self, rec: Recording, file: BinaryIO) -> None:
        self.proto: Any = need("perfetto", "perfetto.protos.perfetto.trace.perfetto_trace_pb2")
        self.rec = rec
        self.file = file
        self.uuid = 0
        self.names: dict[str, int] = {}
        self.keys: dict[str, int] = {}
        self.texts: dict[str, int] = {}
        self.processes: dict[int, int] = {}
        self.threads: dict[tuple[int, int], int] = {}
        self.tracks: dict[tuple[int, int, str], Tracks] = {}

    # ---- packets

    def put(self, packet: Any) -> None:
        packet.trusted_packet_sequence_id = SEQUENCE
        data = packet.SerializeToString()
        self.file.write(PACKET_TAG + _varint(len(data)) + data)

    def packet(self, time_ns: int | None = None) -> Any:
        packet = self.proto.TracePacket()
        if time_ns is not None:
            packet.timestamp = time_ns
            packet.sequence_flags = self.proto.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        return packet

    def track(self, **members: Any) -> int:
        """A track; its uuid."""
        self.uuid += 1
        packet = self.packet()
        packet.track_descriptor.uuid = self.uuid
        for name, value in members.items():
            setattr(packet.track_descriptor, name, value)
        self.put(packet)
        return self.uuid

    def counter(self, name: str, parent: int, unit: str, rank: int) -> int:
        """A counter track; its uuid. unit: "bytes", or the name of another one."""
        self.uuid += 1
        packet = self.packet()
        descriptor = packet.track_descriptor
        descriptor.uuid, descriptor.name, descriptor.parent_uuid = self.uuid, name, parent
        descriptor.sibling_order_rank = rank
        if unit == "bytes":
            descriptor.counter.unit = self.proto.CounterDescriptor.UNIT_SIZE_BYTES
        else:
            descriptor.counter.unit_name = unit
        self.put(packet)
        return self.uuid

    def value(self, uuid: int, time_ns: int, value: float) -> None:
        packet = self.packet(time_ns)
        event = packet.track_event
        event.type, event.track_uuid = self.proto.TrackEvent.TYPE_COUNTER, uuid
        if isinstance(value, int):
            event.counter_value = value
        else:
            event.double_counter_value = value
        self.put(packet)

    def _interned(self, table: dict[str, int], entries: Any, text: str) -> int:
        text = visible(text)
        number = table.get(text)
        if number is None:
            number = table[text] = len(table) + 1
            entry = entries.add(iid=number)
            if hasattr(entry, "str"):
                entry.str = text.encode()
            else:
                entry.name = text
        return number

    def slice(self, uuid: int, name: str, start_ns: int, end_ns: int, arguments: dict[str, Any]) -> None:
        """A slice from start to end or, where they are the same moment, an instant."""
        packet = self.packet(start_ns)
        event, interned = packet.track_event, packet.interned_data
        kinds = self.proto.TrackEvent
        event.type = kinds.TYPE_SLICE_BEGIN if end_ns > start_ns else kinds.TYPE_INSTANT
        event.track_uuid = uuid
        event.name_iid = self._interned(self.names, interned.event_names, name)
        for key, value in arguments.items():
            note = event.debug_annotations.add(name_iid=self._interned(self.keys, interned.debug_annotation_names, key))
            if isinstance(value, bool):
                note.bool_value = value
            elif isinstance(value, int) and key == "address":
                note.pointer_value = value
            elif isinstance(value, int):
                note.int_value = value
            elif isinstance(value, float):
                note.double_value = value
            else:
                note.string_value_iid = self._interned(self.texts, interned.debug_annotation_string_values, str(value))
        self.put(packet)
        if end_ns > start_ns:
            packet = self.packet(end_ns)
            packet.track_event.type, packet.track_event.track_uuid = kinds.TYPE_SLICE_END, uuid
            self.put(packet)

    # ---- what there is

    def clocks(self, about: About) -> None:
        """First of all: which clock the times are of, and what the wall clock was."""
        packet = self.packet()
        packet.sequence_flags = self.proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        packet.trace_packet_defaults.timestamp_clock_id = self.proto.BUILTIN_CLOCK_MONOTONIC
        start_ns = int(self.rec.meta.get("start_ns") or self.rec.origin_ns)
        packet.clock_snapshot.primary_trace_clock = self.proto.BUILTIN_CLOCK_MONOTONIC
        clocks = {self.proto.BUILTIN_CLOCK_MONOTONIC: start_ns}
        if about.start_realtime_ns:
            clocks[self.proto.BUILTIN_CLOCK_REALTIME] = about.start_realtime_ns
        for clock, time_ns in clocks.items():
            packet.clock_snapshot.clocks.add(clock_id=clock, timestamp=time_ns)
        self.put(packet)

    def whole(self, about: About) -> None:
        """The recording itself: what was traced, what was found, what was lost."""
        start_ns = self.rec.origin_ns
        uuid = self.track(name="memtoll recording", sibling_order_rank=-2)
        arguments: dict[str, Any] = {
            name: value for name, value in about.as_dict().items() if isinstance(value, (str, int, float))
        }
        for name, loss in about.losses.items():
            arguments[f"lost {name}"] = int(loss["count"])
        for toll, reason in about.not_captured.items():
            arguments[f"not captured {toll}"] = reason
        self.slice(uuid, about.verdict, start_ns, start_ns + round(about.duration_s * 1e9), arguments)

    def tolls(self) -> None:
        """One counter for each toll that was captured."""
        timeline = self.rec.timeline
        parent = self.track(name="tolls", sibling_order_rank=-1)
        for rank, (toll, rows) in enumerate(timeline.groupby("toll", observed=True, sort=False)):
            uuid = self.counter(str(toll), parent, "ms/s", rank)
            end_ns = 0
            for start_ns, end_ns, time_s in zip(*(rows[name].tolist() for name in ("start_ns", "end_ns", "time_s"))):
                self.value(uuid, start_ns, float(time_s * 1e12 / max(end_ns - start_ns, 1)))
            self.value(uuid, end_ns, 0.0)

    def process(self, pid: int) -> int:
        """The track of a process; one that is not in the recording's list gets no name."""
        if pid not in self.processes:
            self.uuid += 1
            self.processes[pid] = self.uuid
            packet = self.packet()
            descriptor = packet.track_descriptor
            descriptor.uuid, descriptor.process.pid = self.uuid, pid
            table = self.rec.processes
            if pid in table.index:
                row = table.loc[pid]
                descriptor.process.process_name = _text(row["comm"])
                descriptor.process.cmdline.append(_text(row["command"]))
                descriptor.process.start_timestamp_ns = int(row["start_ns"])
            self.put(packet)
        return self.processes[pid]

    def thread(self, pid: int, tid: int) -> int:
        """The track of a thread."""
        if (pid, tid) not in self.threads:
            self.process(pid)
            self.uuid += 1
            self.threads[pid, tid] = self.uuid
            packet = self.packet()
            packet.track_descriptor.uuid = self.uuid
            packet.track_descriptor.thread.pid, packet.track_descriptor.thread.tid = pid, tid
            self.put(packet)
        return self.threads[pid, tid]

    def runs(self, progress: Progress | None) -> None:
        """All runs, in the order of their starts: a track needs its slices so."""
        names = [
            "pid", "tid", "class", "toll", "address", "pages", "faults", "start_ns", "end_ns",
            "call", "area", "allocated_at", "touched_at",
        ]  # fmt: skip
        table = self.rec.faults
        order = table["start_ns"].to_numpy().argsort(kind="stable")
        for begin in range(0, len(order), ROWS):
            rows = table.iloc[order[begin : begin + ROWS]]
            for row in zip(*(rows[name].tolist() for name in names)):
                self._run(dict(zip(names, row)))
            if progress:
                progress("writing fault runs", min(begin + ROWS, len(order)), len(order))

    def _run(self, run: dict[str, Any]) -> None:
        pid, tid, start_ns, end_ns = (run.pop(name) for name in ("pid", "tid", "start_ns", "end_ns"))
        label = "swap-ins" if run["toll"] == SWAP_IN else "faults"
        tracks = self.tracks.setdefault((pid, tid, label), Tracks())
        uuid = tracks.lane(start_ns, end_ns)
        if uuid is None:
            uuid = self.track(name=label, parent_uuid=self.thread(pid, tid))
            tracks.add(uuid, start_ns, end_ns)
        arguments = {name: value for name, value in run.items() if isinstance(value, int) or _text(value)}
        self.slice(uuid, str(run["class"]), start_ns, end_ns, arguments)

    def process_counters(self) -> None:
        """Stalls and memory of each process."""
        for pid in self.rec.processes.index:
            self.process(int(pid))
        stalls = self.rec.query(
            "SELECT x.pid AS pid, x.what AS what, s.start_ns AS start_ns, s.end_ns AS end_ns, SUM(x.ns) AS ns FROM ("
            " SELECT slice, pid, 'asleep in faults' AS what, blocked_ns AS ns FROM main.fault UNION ALL"
            " SELECT slice, pid, 'stalled in reclaim', cpu_ns + blocked_ns FROM main.swap WHERE what LIKE 'reclaim%'"
            ") x JOIN main.slice s ON s.slice = x.slice WHERE x.pid <> 0 GROUP BY x.pid, x.what, s.slice"
            " ORDER BY x.pid, x.what, s.slice"
        )
        for (pid, what), rows in stalls.groupby(["pid", "what"], sort=False):
            if not rows["ns"].any():
                continue
            uuid = self.counter(str(what), self.process(int(pid)), "ms/s", 0)
            last_ns = 0
            for start_ns, end_ns, ns in zip(*(rows[name].tolist() for name in ("start_ns", "end_ns", "ns"))):
                if last_ns and start_ns > last_ns:
                    self.value(uuid, last_ns, 0.0)
                self.value(uuid, start_ns, float(ns * 1e3 / max(end_ns - start_ns, 1)))
                last_ns = end_ns
            self.value(uuid, last_ns, 0.0)
        gauges = {"rss_bytes": "resident", "swap_bytes": "on swap"}
        for pid, rows in self.rec.process_timeline.groupby("pid", sort=False):
            for rank, (column, name) in enumerate(gauges.items(), 1):
                known = rows[rows[column].notna()]
                if len(known):
                    uuid = self.counter(name, self.process(int(pid)), "bytes", rank)
                    for end_ns, size in zip(known["end_ns"].tolist(), known[column].tolist()):
                        self.value(uuid, end_ns, int(size))


def _text(value: Any) -> str:
    """What people are shown of it: nothing that a terminal or a page obeys."""
    return visible(value) if isinstance(value, str) else ""


def write(rec: Recording, about: About, path: Path, progress: Progress | None) -> None:
    """Write the trace. MissingExtra: no package "perfetto"."""
    with path.open("wb") as file:
        writer = Writer(rec, file)
        writer.clocks(about)
        writer.whole(about)
        writer.tolls()
        writer.process_counters()
        writer.runs(progress)
