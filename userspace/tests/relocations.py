# SPDX-License-Identifier: GPL-2.0
"""What libbpf made of the programs' relocations, as it says with MEMTOLL_DEBUG."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property


@dataclass
class Relocations:
    debug: str

    @cached_property
    def instructions(self) -> list[str]:
        """As they were changed, of all programs."""
        found = re.findall(r"prog '\w+': relo #\d+: (?:patched|substituting) insn .*", self.debug)
        assert len(found) > 500, self.debug[-2000:]
        return sorted(found)

    @cached_property
    def programs(self) -> set[str]:
        """Those that were loaded."""
        return {line.split("'")[1] for line in self.instructions}

    @cached_property
    def types(self) -> dict[str, int]:
        """By their names, their numbers in what libbpf looked through. Programs were loaded once."""
        found = re.findall(r"found target candidate \[(\d+)\] (\w+ \w+) in \[vmlinux\]", self.debug)
        assert found
        types: dict[str, int] = {}
        for number, name in found:
            assert types.setdefault(name, int(number)) == int(number), f"{name}: two numbers"
        return types


def assert_subset(whole: Relocations, subset: Relocations) -> None:
    """The second start looked through a part of the types, and changed the same instructions in the same way."""
    assert subset.instructions == whole.instructions
    assert subset.types.keys() == whole.types.keys()
    assert max(subset.types.values()) < max(whole.types.values())
