# SPDX-License-Identifier: GPL-2.0
"""A Prometheus that scrapes memtoll watch: the dashboard's queries and the rules find what is told."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness import MEMTOLL, Program, end, finish, spawn, wait_until, workload
from monitoring import MONITORING, free_port, program

pytestmark = pytest.mark.root

BLOCK = 200 << 10
# What Grafana puts there.
VARIABLES = {"$__rate_interval": "10s", "$instance": ".*", "$target": ".*"}
# Nothing of it happens here.
NONE = {"Losses", "Failures of a day"}


class Prometheus:
    def __init__(self, stack: ExitStack, place: Path, scraped: str) -> None:
        self.at = f"127.0.0.1:{free_port()}"
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "scrape_configs": [{"job_name": "memtoll", "static_configs": [{"targets": [scraped]}]}],
            "rule_files": [str(MONITORING / "memtoll-alerts.yml")],
        }
        (place / "prometheus.yml").write_text(json.dumps(config))
        words = [program("prometheus"), f"--config.file={place}/prometheus.yml", f"--storage.tsdb.path={place}/data"]
        log = stack.enter_context((place / "prometheus.log").open("w"))
        stack.callback(end, spawn([*words, f"--web.listen-address={self.at}"], stderr=log, stdout=subprocess.DEVNULL))
        wait_until(lambda: self.ask("vector(1)"), "Prometheus")

    def ask(self, query: str) -> list[Any]:
        """The series that it finds; none, too, while it does not answer yet."""
        with suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            address = f"http://{self.at}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
            with urllib.request.urlopen(address, timeout=10) as answer:
                said = json.load(answer)
                assert said["status"] == "success", said
                return list(said["data"]["result"])
        return []


@pytest.fixture
def prometheus(tmp_path: Path, public_dir: Path) -> Iterator[Prometheus]:
    """It, and a program that clears blocks, watched."""
    name = f"mtpr{os.getpid()}"
    copied = Path(shutil.copy(workload("calloc_loop"), public_dir / name))
    with (
        ExitStack() as stack,
        Program(copied, str(BLOCK), "0", "--seconds", "600", "--rest", "2000"),
        (tmp_path / "log").open("w") as said,
    ):
        words = ["-n", name, "-I", "1s", "-o", str(tmp_path / "kept"), "--listen", "127.0.0.1:0"]
        watch = spawn([MEMTOLL, "watch", *words], stderr=said)
        stack.callback(end, watch)

        def listens() -> str:
            found = re.search(r"http://(127\.0\.0\.1:\d+)", (tmp_path / "log").read_text())
            return found[1] if found else ""

        wait_until(listens, "where it listens")
        found = Prometheus(stack, tmp_path, listens())
        wait_until(partial(found.ask, "memtoll_processes > 0"), "the program")
        # Places are told when a recording is whole.
        watch.send_signal(signal.SIGHUP)
        yield found
        watch.send_signal(signal.SIGTERM)
        assert finish(watch).status == 0


def test_the_dashboard_finds_what_is_told(prometheus: Prometheus) -> None:
    dashboard = json.loads((MONITORING / "memtoll-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            query = target["expr"]
            for variable, value in VARIABLES.items():
                query = query.replace(variable, value)
            assert "$" not in query
            if panel["title"] in NONE:
                prometheus.ask(query)
            else:
                wait_until(partial(prometheus.ask, query), f"{panel['title']}: {query}")
    # Of the first few samples what lies before them is made up (rate() extrapolates).
    share = 'memtoll:toll_share:rate5m{toll="zero.libc"} > 0 <= 1'
    wait_until(lambda: prometheus.ask(share), "the rule's share")
    assert prometheus.ask('ALERTS{alertname="MemtollSilent"}') == []
