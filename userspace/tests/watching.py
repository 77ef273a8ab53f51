# SPDX-License-Identifier: GPL-2.0
"""memtoll watch that runs: its options in a file, and what it tells in lines, metrics and its log."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import MEMTOLL, finish, spawn, wait_until


class Watch:
    """With a file of options, and all that it says."""

    def __init__(self, directory: Path) -> None:
        self.options, self.kept = directory / "options", directory / "kept"
        self.log, self.lines, self.prom = directory / "log", directory / "lines", directory / "memtoll.prom"

    def start(self, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.write(*options)
        with self.log.open("w") as said:
            words = [
                f"--config={self.options}",
                f"--output={self.kept}",
                f"--metrics={self.prom}",
                f"--json={self.lines}",
            ]
            self.process = spawn([MEMTOLL, "watch", *words], environment, stderr=said)

    def write(self, *options: str) -> None:
        self.options.write_text("# what is watched\n\n" + "".join(f"{line}\n" for line in options))

    def reload(self, *options: str) -> str:
        """What it says to that; the recording that has begun then counts."""
        before, said = self.recording(), self.log.read_text()
        self.write(*options)
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.recording() != before, "the next recording")
        return "".join(
            line
            for line in self.log.read_text()[len(said) :].splitlines(keepends=True)
            if not line.endswith(" is whole\n")
        )

    def told(self) -> list[dict[str, Any]]:
        text = self.lines.read_text() if self.lines.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def recording(self) -> str:
        told = self.told()
        return str(told[-1]["recording"]) if told else ""

    def value(self, name: str, **labels: str) -> float | None:
        words = ",".join(f'{key}="{value}"' for key, value in labels.items())
        text = self.prom.read_text() if self.prom.exists() else ""
        found = re.search(rf"^memtoll_{name}{re.escape('{' + words + '}') if words else ''} (\S+)$", text, re.M)
        return float(found[1]) if found else None

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert finish(self.process).status == 0

    def recordings(self) -> list[Path]:
        """Those that are whole, the oldest first."""
        return sorted(self.kept.glob("watch-*.memtoll"))
