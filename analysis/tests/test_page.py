# SPDX-License-Identifier: GPL-2.0
"""The page as a file: what is in it, what must never be, and how the command treats files."""

from __future__ import annotations

import json
import re
import stat
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import memtoll
from memtoll.page import page
from memtoll.page.words import embedded, shown
from memtoll.visible import visible

import facts
from crowd import crowd
from hostile import hostile
from package import Cli

VOID = {"meta", "img", "input", "br", "link", "hr"}


class Reader(HTMLParser):
    """Elements, attributes and text, as a browser would take them apart."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: Counter[str] = Counter()
        self.scripts: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids.update(value or "" for name, value in attrs if name == "id")
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def data(self) -> dict[str, Any]:
        data = json.loads(self.scripts[0])
        assert isinstance(data, dict)
        return data


def read(path: Path, **options: Any) -> Reader:
    with memtoll.open(path) as rec:
        return Reader(page(rec, **options))


def check_safe(reader: Reader) -> None:
    """Nothing runs but our script, nothing comes from elsewhere."""
    assert not reader.open, reader.open
    assert reader.tags["script"] == 2
    assert not {"iframe", "object", "embed", "base", "link", "img", "foreignobject"} & set(reader.tags)
    for tag, name, value in reader.attributes:
        assert not name.startswith("on"), (tag, name, value)
        if name in ("src", "href", "xlink:href", "action", "formaction", "srcset", "data"):
            assert value.startswith(("#", "data:image/png;base64,")), (tag, name, value[:80])
        if name == "style":
            assert not re.search(r"url\((?!#)", value), value
    (policy,) = (value for tag, name, value in reader.attributes if name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert [each for each, times in reader.ids.items() if times > 1] == []


@pytest.mark.slow
def test_every_scenario(scenario: Path) -> None:
    reader = read(scenario)
    check_safe(reader)
    with memtoll.open(scenario) as rec:
        assert rec.verdict.sentence in reader.text
        for advice in rec.verdict.advice:
            for key in ("code", "title", "text", "evidence", "cost", "try"):
                assert " ".join((advice[key] or "").split()) in reader.text
        for note in rec.notes:
            assert note in reader.text
        for toll, row in rec.toll.iterrows():
            assert str(toll) in reader.text
            if isinstance(row["not_captured"], str):
                assert row["not_captured"] in reader.text


@pytest.fixture(scope="module")
def busy_page(_busy_once: Path) -> Reader:
    return read(_busy_once)


@pytest.mark.slow
def test_sites_in_the_page_are_the_recording_s(busy: Path, busy_page: Reader) -> None:
    data = busy_page.data
    with memtoll.open(busy) as rec:
        sites = rec.sites
        columns = data["sites"]
        assert len(columns["time"]) == len(sites) and data["left"]["sites"] == 0
        for at, row in enumerate(sites.to_dict("records")):
            assert data["tolls"][columns["toll"][at]] == row["toll"]
            assert columns["time"][at] == round(row["time_s"] * 1e9)
            assert (columns["bytes"][at], columns["count"][at]) == (row["bytes"], row["count"])
            for key, stack in (("a", "allocated_stack"), ("t", "touched_stack")):
                node, frames = columns[key][at], []
                while node:
                    frame = data["frame"][node]
                    frames.append(tuple(data["texts"][data["frames"][name][frame]] for name in ("function", "place")))
                    node = data["parent"][node]
                wanted = rec.stack(row[stack]) if row[stack] else []
                assert frames == [(frame.function, frame.place) for frame in wanted]
        assert all(parent < node for node, parent in enumerate(data["parent"]) if node)


@pytest.mark.slow
def test_figures_of_toll_table_and_why_the_limit_was_not_kept(tmp_path: Path) -> None:
    made = facts.heap_blocks(tmp_path / "a.memtoll")
    made.database.execute("UPDATE meta SET value = '0.001' WHERE key = 'overhead_limit'")
    made.save()
    text = read(tmp_path / "a.memtoll").text
    assert "(limit 0.001 %, the first second of CPU time is not held to it) Details" in text
    with memtoll.open(tmp_path / "a.memtoll") as rec:
        row = rec.toll.loc["zero.libc"]
        assert f"{100 * row['share_low']:.1f}-{100 * row['share_high']:.1f} %" in text
        assert "29.3 GiB" in text and "2,999" in text


@pytest.mark.slow
def test_losses_checks_and_overhead_are_reported(busy: Path, busy_page: Reader) -> None:
    text = busy_page.text
    with memtoll.open(busy) as rec:
        lost = rec.losses[rec.losses["count"] > 0]
        assert len(lost) >= 2
        for name, row in lost.iterrows():
            assert (
                str(name) in text and row["meaning"] in text and row["remedy"] in text and f"{row['count']:,}" in text
            )
        for name, row in rec.checks.iterrows():
            assert str(name).replace("_", " ") in text and f"{row['ours']:,}" in text
        assert f"{rec.overhead.attrs['hits']:,} probe hits" in text
        assert "Losses beyond the limit" in text or "little lost" in text


@pytest.mark.slow
def test_hostile_names(tmp_path: Path) -> None:
    path = tmp_path / "hostile.memtoll"
    hostile(path)
    with memtoll.open(path) as rec:
        text = page(rec)
    reader = Reader(text)
    check_safe(reader)
    assert "\u202e" not in text and "\x1b" not in text and "\\u202e" in reader.text
    assert "document.title='taken'" in reader.text, "names are shown as they are"
    assert any("</script>" in each for each in reader.data["texts"])
    assert all(len(each) <= 400 for each in reader.data["texts"])


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "a & b", "\u2028", "\u05d0", "\udcff"])
def test_embedded_text_is_escaped(text: str) -> None:
    assert not set("<>&\u2028\udcff") & set(embedded([text]))
    assert json.loads(embedded([text])) == [text]
    assert not re.search(r"[<>\"'\u2028\udcff]", shown(text))
    assert visible("tab\tbell\x07\u202e\U000e0001") == "tab\\x09bell\\x07\\u202e\\U000e0001"


@pytest.mark.slow
def test_size_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "crowd.memtoll"
    crowd(path, sites=307)
    with memtoll.open(path) as rec:
        some = Reader(page(rec, sites=7))
        left = rec.sites.iloc[7:]
        assert len(some.data["sites"]["time"]) == 7
        assert some.data["left"] == {"sites": len(left), "time": round(left["time_s"].sum() * 1e9)}
        assert len(some.scripts[0]) < 20_000
        assert Reader(page(rec, sites=0)).data["sites"]["time"] == []


# ---- the command


@pytest.mark.slow
def test_default_name_and_no_overwriting(cli: Cli, heap_blocks: Path, tmp_path: Path) -> None:
    done = cli("html", heap_blocks)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "memtoll: wrote heap-blocks.html\n")
    made = tmp_path / "heap-blocks.html"
    assert made.read_text().startswith("<!DOCTYPE html>")
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    made.write_text("mine")
    refused = cli("html", heap_blocks)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1 and "--force" in refused.stderr
    assert made.read_text() == "mine"
    assert cli("html", heap_blocks, "--force").returncode == 0
    assert made.read_text().startswith("<!DOCTYPE html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["heap-blocks.html", "heap-blocks.memtoll"]


@pytest.mark.slow
def test_stdout_and_other_names(cli: Cli, heap_blocks: Path, tmp_path: Path) -> None:
    done = cli("html", heap_blocks, "-o", "-")
    assert done.returncode == 0 and done.stdout.endswith("</html>\n") and done.stderr == ""
    with memtoll.open(heap_blocks) as rec:
        assert page(rec) == done.stdout, "the same recording is the same page"
    assert cli("html", heap_blocks, "-o", tmp_path / "report.html", "--sites", "1").returncode == 0
    assert len(Reader((tmp_path / "report.html").read_text()).data["sites"]["time"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("words", [("-o", "nowhere/at/all.html"), ("-o", ".")])
def test_places_where_nothing_can_be(cli: Cli, heap_blocks: Path, words: tuple[str, ...]) -> None:
    done = cli("html", heap_blocks, *words)
    assert done.returncode == 1 and done.stdout == "" and len(done.stderr.splitlines()) == 1, done


@pytest.mark.slow
def test_no_link_is_followed(cli: Cli, heap_blocks: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    (tmp_path / "heap-blocks.html").symlink_to("other")
    assert cli("html", heap_blocks).returncode == 1
    assert cli("html", heap_blocks, "--force").returncode == 0
    assert (tmp_path / "other").read_text() == "mine" and not (tmp_path / "heap-blocks.html").is_symlink()


def test_not_a_recording(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "text.memtoll").write_text("no")
    done = cli("html", tmp_path / "text.memtoll")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["text.memtoll"]
