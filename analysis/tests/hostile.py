# SPDX-License-Identifier: GPL-2.0
"""A recording whose names try everything: markup, scripts, formulas, control and direction characters."""

from __future__ import annotations

from pathlib import Path

from facts import FAULT_NS, MS, Facts, S, finished

SCRIPT = "</script><script>document.title='taken'</script>"
IMAGE = "<img src=x onerror=\"document.title='taken'\">"
TURNED = "abc\u202egnp.exe\u2066"
CONTROLS = "bell\x07 escape\x1b[31m line\nfeed\x00 \x7f \ud800"
FORMULA = r"$\frac{1}{$ cost$ _x^y \end"
NAMES = (
    SCRIPT,
    IMAGE,
    TURNED,
    CONTROLS,
    FORMULA,
    "]]>&amp;&lt;",
    "'\"><svg onload=alert(1)>",
    "\u05e9\u05dc\u05d5\u05dd",
    "x" * 5000,
)


def stored(text: str) -> str:
    """As SQLite can hold it."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def hostile(path: Path) -> None:
    facts = Facts(path)
    facts.prices()
    facts.slice(1, 2.0)
    facts.process(comm=stored(SCRIPT)[:15], command=stored(IMAGE), executable=stored(TURNED))
    facts.allocator()
    for at, name in enumerate(map(stored, NAMES)):
        made = facts.stack(
            ("malloc", "", 0), (name, f"/src/{name}.c", 3), ("main", "/src/a.c", 5), module=f"/srv/{name}"
        )
        touched = facts.stack((name, name, 7), ("main", "/src/a.c", 6))
        facts.fault(
            "zero",
            1009 * (at + 1),
            FAULT_NS + 100,
            allocated_stack=made,
            allocated_call="malloc",
            touched_stack=touched,
        )
        facts.fault("file_minor", 11 + at, FAULT_NS, touched_stack=touched, area="file", area_name=name)
        facts.call("malloc", made, 13 + at, bytes=4099 * (at + 1), cpu_ns=7 * MS)
        begin, pages = 1_000 * S + at * S // 10, 1009 * (at + 1)
        facts.row(
            "fault_run", slice=1, pid=42, tid=42, **{"class": "zero"}, address=0x10000000 + 0x4000000 * at, pages=pages,
            faults=pages, first_ns=begin, last_ns=begin + S // 10, allocated_stack=made, allocated_call="malloc",
            touched_stack=touched, area="anon",
        )  # fmt: skip
    facts.row("loss_kind", name="ring_fault", meaning=stored(IMAGE), remedy=stored(SCRIPT))
    facts.row("loss", slice=1, name="ring_fault", count=17)
    facts.row("not_captured", toll="cow", reason=stored(SCRIPT))
    facts.cpu(500 * MS, minor=50_000)
    facts.meta(host=stored(SCRIPT), kernel=stored(IMAGE))
    finished(facts, stored(SCRIPT) + stored(TURNED))
    facts.database.close()
