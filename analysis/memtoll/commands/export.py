# SPDX-License-Identifier: GPL-2.0
"""python3 -m memtoll export FILE -o OUT: a recording in another tool's format."""

from __future__ import annotations

import argparse
import json

from ..frames import FRAMES, TOLLS
from . import Command, incomplete_argument, redact_argument, terminal, wrote

FORMATS = ("pprof", "otlp", "speedscope", "firefox", "folded", "perfetto", "parquet", "csv", "ndjson")
PROFILES = "pprof, otlp, speedscope, firefox"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="the recording")
    parser.add_argument("-o", "--output", metavar="OUT", help="the file or directory to make; -: standard output")
    parser.add_argument("-f", "--format", choices=FORMATS, help="the format (otherwise by the suffix of OUT)")
    parser.add_argument(
        "--toll", choices=TOLLS, metavar="TOLL", help="pprof, otlp, speedscope, firefox, folded: only this toll"
    )
    parser.add_argument("--owner", choices=("allocated", "touched"), help=f"{PROFILES}: where samples are put")
    parser.add_argument(
        "--frame",
        action="append",
        choices=[frame.name for frame in FRAMES],
        metavar="NAME",
        help="parquet, csv, ndjson: only this frame (may be repeated; see the subcommand frames)",
    )
    parser.add_argument("--force", action="store_true", help="replace what exists")
    parser.add_argument(
        "--schema", action="store_true", help="print the schema of parquet, csv or ndjson as JSON; needs no FILE"
    )
    incomplete_argument(parser)
    redact_argument(parser)
    parser.set_defaults(usage_error=parser.error)


def run(arguments: argparse.Namespace) -> int:
    from ..export import BadExport, export, format_of, schema
    from ..recording import open as open_recording

    try:
        if arguments.schema:
            if arguments.format is None and arguments.output is None:
                arguments.usage_error("--schema needs --format")
            name = arguments.format or format_of(arguments.output)
            print(json.dumps(schema(name, arguments.frame), indent=1, ensure_ascii=False))
            return 0
        if arguments.file is None or arguments.output is None:
            arguments.usage_error(f"{'FILE' if arguments.file is None else '-o OUT'} is missing")
        if arguments.format is None:
            arguments.format = format_of(arguments.output)
        progress = terminal()
        with open_recording(arguments.file, progress=progress, redact=arguments.redact) as rec:
            export(
                rec,
                arguments.output,
                arguments.format,
                toll=arguments.toll,
                owner=arguments.owner,
                frames=arguments.frame,
                force=arguments.force,
                progress=progress,
            )
    except BadExport as error:
        arguments.usage_error(str(error))
    if arguments.output != "-":
        wrote(arguments.output)
    return 0


COMMAND = Command(
    name="export",
    help="a recording in another tool's format: pprof, Perfetto, OpenTelemetry, Parquet ...",
    description=(
        "Write a recording in another tool's format.\n\n"
        "  python3 -m memtoll export server.memtoll -o server.pb.gz     # go tool pprof server.pb.gz\n"
        "  python3 -m memtoll export server.memtoll -o server.pftrace   # open it in ui.perfetto.dev\n"
        "  python3 -m memtoll export server.memtoll -o server.speedscope.json   # speedscope.app opens it\n"
        "  python3 -m memtoll export server.memtoll -o server.firefox.json      # profiler.firefox.com opens it\n"
        "  python3 -m memtoll export server.memtoll -o server.otlp      # OpenTelemetry; or push it: push --help\n"
        "  python3 -m memtoll export server.memtoll -o z.folded --toll zero.kernel\n"
        "  python3 -m memtoll export server.memtoll -o tables -f parquet\n"
        "  python3 -m memtoll export --schema -f ndjson"
    ),
    arguments=arguments,
    run=run,
)
