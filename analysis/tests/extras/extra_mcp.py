# SPDX-License-Identifier: GPL-2.0
"""The Model Context Protocol server, asked by the SDK's own client, over its standard input and output."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

import facts
from package import environment

READING = {"recordings", "open_recording", "verdict", "site_stacks", "compare", "explain"}


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    inside = tmp_path / "inside"
    inside.mkdir()
    for name in ("inside/one", "inside/two", "outside"):
        path = tmp_path / f"{name}.memtoll"
        facts.heap_blocks(path).database.close()
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("INSERT OR REPLACE INTO meta VALUES ('host', 'web1')")
    (inside / "link.memtoll").symlink_to("../outside.memtoll")
    before = sorted((path.name, path.lstat().st_mtime_ns, path.lstat().st_size) for path in inside.iterdir())
    yield inside
    # Whatever was asked: nothing was written, no journal and no temporary file.
    assert before == sorted((path.name, path.lstat().st_mtime_ns, path.lstat().st_size) for path in inside.iterdir())


def asked(directory: Path, talk: Callable[[Client], Awaitable[Any]], *words: str) -> Any:
    """What comes of a talk with a server of its own."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "memtoll", "mcp", str(directory), *words], env=environment()
    )

    async def run() -> Any:
        async with Client(server, read_timeout_seconds=60) as client:
            return await talk(client)

    return asyncio.run(run())


async def called(client: Client, tool: str, **values: Any) -> tuple[bool, str]:
    result = await client.call_tool(tool, values)
    return bool(result.is_error), "".join(part.text for part in result.content)  # type: ignore[union-attr]


async def tools_only_read(client: Client) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == READING
    for tool in tools.values():
        assert tool.description and tool.annotations and tool.annotations.read_only_hint is True
    assert set(tools["verdict"].input_schema["properties"]) == {"recording", "tokens"}
    assert (await called(client, "record", pid=os.getpid(), seconds=1, name="new"))[0]


async def what_is_wrong_is_one_line(client: Client) -> None:
    """And the server goes on."""
    for name in ("../outside.memtoll", "link.memtoll", "/etc/passwd", "missing.memtoll"):
        wrong, said = await called(client, "verdict", recording=name)
        assert wrong and len(said.splitlines()) == 1 and "zeroing" not in said, said
    wrong, said = await called(client, "verdict", recording="one.memtoll", tokens=1)
    assert wrong and "320" in said
    assert not (await called(client, "verdict", recording="one.memtoll"))[0]


async def what_the_tools_say(client: Client) -> None:
    wrong, listed = await called(client, "recordings")
    assert not wrong and {line.split()[-1] for line in listed.splitlines()} == {"one.memtoll", "two.memtoll"}
    wrong, opened = await called(client, "open_recording", recording="one.memtoll")
    assert not wrong and "command: ./calloc_loop 10485760 3001" in opened
    wrong, verdict = await called(client, "verdict", recording="one.memtoll", tokens=500)
    assert not wrong and verdict.startswith("verdict: zeroing 99.1 %") and len(verdict) < 500
    wrong, stacks = await called(client, "site_stacks", recording="one.memtoll", rank=1)
    assert not wrong and "round_once calloc_loop.c:42" in stacks
    wrong, both = await called(client, "compare", before="one.memtoll", after="two.memtoll")
    assert not wrong and "zero.libc" in both
    wrong, advice = await called(client, "explain", code="calloc-reuse-memset", recording="one.memtoll")
    assert not wrong and "Given there" in advice


def test_a_talk(directory: Path) -> None:
    """One server is asked all of it: to start one takes longer than all that it answers."""

    async def talk(client: Client) -> None:
        for part in (tools_only_read, what_is_wrong_is_one_line, what_the_tools_say):
            await part(client)

    asked(directory, talk)


def test_recording_has_to_be_allowed(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tracer that writes what a recording has, in place of ours: how it is called is its output."""
    tracer = tmp_path / "memtoll"
    tracer.write_text(f'#!/bin/sh\necho "$*" >{tmp_path}/called\necho noise\nexit 3\n')
    tracer.chmod(0o755)
    monkeypatch.setenv("MEMTOLL", str(tracer))

    async def talk(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {*READING, "record"}
        assert tools["record"].annotations and tools["record"].annotations.read_only_hint is False
        wrong, said = await called(client, "record", pid=7, seconds=61, name="new")
        assert wrong and "60" in said and not (tmp_path / "called").exists()
        wrong, said = await called(client, "record", pid=7, seconds=0.5, name="../new")
        assert wrong and not (tmp_path / "called").exists()
        wrong, said = await called(client, "record", pid=7, seconds=0.5, name="new")
        assert wrong and "status 3" in said

    asked(directory, talk, "--allow-record")
    assert (tmp_path / "called").read_text() == f"record -p 7 -d 500ms -o {directory}/new.memtoll\n"
