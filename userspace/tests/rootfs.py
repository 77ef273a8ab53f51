# SPDX-License-Identifier: GPL-2.0
"""rootfs.py SUITE...: root file systems of Debian's releases with nothing but what every machine has.

Made once, by debootstrap from the archive that this system's own packages come from, and kept beside what is built.
`make test-packages` has them made before its tests, as a busy machine takes minutes.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from environments import place
from harness import tool
from kernels import archive

SECONDS: Final = 1800


def root_of(suite: str) -> Path:
    made = place() / f"root-{suite}"
    with (place() / f"root-{suite}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / "complete").exists():
            shutil.rmtree(made, ignore_errors=True)
            done = subprocess.run(
                [tool("debootstrap"), "--variant=minbase", suite, made, archive()],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                text=True,
                timeout=SECONDS,
                check=False,
            )
            if done.returncode:
                raise RuntimeError(f"debootstrap {suite}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr}")
            (made / "complete").touch()
    return made


if __name__ == "__main__":
    for name in sys.argv[1:]:
        root_of(name)
