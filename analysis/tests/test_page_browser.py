# SPDX-License-Identifier: GPL-2.0
"""The page in a real browser: widths, keyboard, 100,000 sites, hostile names, no network."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import memtoll
from memtoll.page import page

import facts
from browser import DESKTOP, PHONE, Browser, Keys, browser
from busy import busy_recording
from crowd import crowd
from hostile import hostile

pytestmark = pytest.mark.slow

MAKERS = {
    "busy": busy_recording,
    "hostile": hostile,
    "naive-calloc": lambda path: facts.naive_calloc(path).database.close(),
    "cpu-loop": lambda path: facts.cpu_loop(path).database.close(),
}


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Page by name, made when first asked for."""
    directory = tmp_path_factory.mktemp("pages")

    class Made(dict[str, Path]):
        def __missing__(self, name: str) -> Path:
            MAKERS[name](directory / f"{name}.memtoll")
            with memtoll.open(directory / f"{name}.memtoll") as rec:
                (directory / f"{name}.html").write_text(page(rec))
            self[name] = directory / f"{name}.html"
            return self[name]

    return Made()


CROWD = 10_007


@pytest.fixture(scope="module")
def crowd_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many more sites than are shown."""
    directory = tmp_path_factory.mktemp("crowd")
    crowd(directory / "crowd.memtoll", sites=CROWD)
    with memtoll.open(directory / "crowd.memtoll") as rec:
        (directory / "crowd.html").write_text(page(rec))
    return directory / "crowd.html"


@pytest.fixture(autouse=True)
def _quiet(tab: Browser) -> Iterator[None]:
    """No test may leave a complaint in the console or have asked for anything but the file."""
    tab.complaints()
    tab.requests()
    yield
    assert tab.complaints() == []
    assert [address[:100] for address in tab.requests() if not address.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize("screens", [(DESKTOP, (320, 600)), (PHONE, (800, 600))], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", ["busy", "hostile", "naive-calloc", "cpu-loop"])
def test_fits_every_width(
    tab: Browser, pages: dict[str, Path], name: str, screens: tuple[tuple[int, int], ...]
) -> None:
    """The one it is opened at, and another one that the window is made later."""
    tab.screen(*screens[0])
    tab.open(pages[name])
    for screen in screens:
        tab.run("document.querySelectorAll('details').forEach((each) => { each.open = false; })")
        tab.screen(*screen)
        fits(tab, screen)


def fits(tab: Browser, screen: tuple[int, int]) -> None:
    """First as it is closed, then with all that opens."""
    assert tab.overflow() == []
    tab.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    tab.until("[...document.querySelectorAll('.site')].every((each) => each.children.length > 1)")
    assert tab.overflow() == []
    shown = "narrow" if screen[0] < 896 else "wide"
    assert tab.run(f"document.querySelector('figure .{shown} svg').getBoundingClientRect().width > 250")
    # Words in pictures are readable: at least 8.5 pixels high.
    assert (
        tab.run(
            f"Math.min(...[...document.querySelectorAll('figure .{shown} svg text')].map("
            "(each) => each.getBoundingClientRect().height ? parseFloat(getComputedStyle(each).fontSize)"
            " * each.ownerSVGElement.getScreenCTM().a : 99))"
        )
        >= 8.5
    )


# Least WCAG contrast of the words of a selector against the ground behind them.
CONTRAST = """((selector) => {
    const parse = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((part) => part / 255).map(
        (part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
    const ground = (each) => {
        for (; each; each = each.parentElement) {
            const colour = parse(getComputedStyle(each).backgroundColor);
            if (colour.length < 4 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    return Math.min(...[...document.querySelectorAll(selector)].map((each) => {
        const [a, b] = [light(parse(getComputedStyle(each).color)), light(ground(each))].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);
    }));
})(arguments[0])"""
WORDS = "p h2 td th caption a li dt small button input summary>span figcaption>span .place #flame-graph>div"


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark(tab: Browser, pages: dict[str, Path], dark: bool) -> None:
    tab.screen(*DESKTOP, dark=dark)
    tab.open(pages["busy"])
    ground = tab.run("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(11, 14, 18)") is dark
    for selector in WORDS.split():
        assert tab.run(CONTRAST, selector) >= 4.5, selector
    # The pictures follow.
    ink = tab.run("getComputedStyle(document.querySelector('figure .wide svg text')).fill")
    assert ink == tab.run("getComputedStyle(document.body).color")


def test_keyboard_walk(tab: Browser, pages: dict[str, Path]) -> None:
    """From the top with Tab alone: every stop can be seen, and all that can be done is reached."""
    tab.screen(*DESKTOP)
    tab.open(pages["hostile"])
    stops = []
    for _ in range(200):
        tab.press(Keys.TAB)
        stop = tab.run(
            "(() => { const each = document.activeElement, box = each.getBoundingClientRect();"
            " return [each.tagName, each.id, each.className, box.width * box.height,"
            " getComputedStyle(each).outlineStyle, getComputedStyle(each).outlineWidth]; })()"
        )
        if stop[0] == "BODY":
            break
        stops.append(stop)
        assert stop[3] > 0 and stop[4] != "none" and stop[5] != "0px", stop
    found = {stop[1] for stop in stops}
    fields = ("site-search", "site-toll", "site-more", "flame-toll", "flame-owner", "flame-search", "flame-reset")
    assert set(fields) <= found
    assert stops[0][2] == "skip"
    assert sum(stop[0] == "SUMMARY" for stop in stops) >= 10
    assert sum(stop[0] == "CANVAS" for stop in stops) == 2, "the map and the timeline"
    assert sum(stop[0] == "DIV" for stop in stops) == 1, "one stop for the whole flame graph"


def test_site_opens_by_keyboard(tab: Browser, pages: dict[str, Path]) -> None:
    tab.screen(*PHONE)
    tab.open(pages["naive-calloc"])
    assert tab.run("document.querySelectorAll('.site .stacks').length") == 0
    tab.run("document.querySelector('.site summary').focus()")
    tab.press(Keys.ENTER)
    tab.until("document.querySelector('.site .stacks') !== null")
    text = tab.run("document.querySelector('.site .stacks').innerText")
    assert text.index("allocated at") < text.index("round_once") < text.index("touched at") < text.index("memset")
    assert "calloc_loop.c:42" in text and "main" in text
    tab.press(Keys.ENTER)
    assert tab.run("document.querySelector('.site').open") is False


def test_search_and_sort(tab: Browser, pages: dict[str, Path]) -> None:
    tab.screen(*DESKTOP)
    tab.open(pages["busy"])
    whole = tab.run("document.getElementById('site-status').innerText")
    tab.run("document.getElementById('site-search').focus()")
    tab.press("parse.c")
    tab.until(f"document.getElementById('site-status').innerText !== '{whole}'")
    assert " of " in tab.run("document.getElementById('site-status').innerText")
    places = tab.run("[...document.querySelectorAll('.site .place')].map((each) => each.innerText)")
    assert places and all("parse.c" in place for place in places)
    tab.press(*"x" * 9)
    tab.until("document.querySelectorAll('.site').length === 0")
    tab.press(Keys.CONTROL + "a", Keys.BACKSPACE)
    tab.until(f"document.getElementById('site-status').innerText === '{whole}'")
    for key in ("bytes", "count"):
        tab.run(f"document.querySelector('[data-sort={key}]').focus()")
        tab.press(Keys.ENTER)
        assert tab.run(f"document.querySelector('[data-sort={key}]').ariaPressed") == "true"
    first = tab.run("document.querySelector('.site .figure').innerText")
    assert first.endswith((" x", "samples"))


def test_tables_sort_by_their_buttons(tab: Browser, pages: dict[str, Path]) -> None:
    tab.screen(*DESKTOP)
    tab.open(pages["busy"])
    column = "[...document.querySelectorAll('#toll-table tbody tr')].map((each) => Number(each.cells[1].dataset.key))"
    assert tab.run(column) != sorted(tab.run(column), reverse=True)
    for descending in (True, False):
        tab.run("document.querySelectorAll('#toll-table thead button')[1].focus()")
        tab.press(Keys.ENTER)
        assert tab.run(column) == sorted(tab.run(column), reverse=descending)
        order = "descending" if descending else "ascending"
        assert tab.run("document.querySelectorAll('#toll-table thead th')[1].ariaSort") == order


def test_flame_graph_by_keyboard(tab: Browser, pages: dict[str, Path]) -> None:
    tab.screen(*DESKTOP)
    tab.open(pages["naive-calloc"])
    tab.run("document.querySelector('#flame-graph [tabindex=\"0\"]').focus()")

    def name() -> str:
        return tab.focused().rpartition("% ")[2]

    assert name() == "all" and tab.focused().startswith("100 %")
    walked = []
    for _ in range(4):
        tab.press(Keys.ARROW_UP)
        walked.append(name())
    assert walked == ["main", "round_once", "calloc", "zero.kernel"]
    assert "zero.kernel" in tab.run("document.getElementById('flame-status').innerText")
    tab.press(Keys.ARROW_RIGHT)
    assert name() != "zero.kernel"
    tab.press(Keys.ARROW_LEFT, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert name() == "round_once"
    tab.press(Keys.ENTER)
    width = "document.activeElement.getBoundingClientRect().width / document.getElementById('flame-graph').clientWidth"
    assert name() == "round_once" and tab.run(width) > 0.99
    tab.press(Keys.ESCAPE)
    assert name() == "main"
    # By the other owner, and found by a search.
    tab.run("document.getElementById('flame-owner').focus()")
    tab.press("t")
    tab.until("[...document.querySelectorAll('#flame-graph div')].some((each) => each.innerText.includes('memset'))")
    tab.run("document.getElementById('flame-search').focus()")
    tab.press("memset")
    tab.until("document.querySelectorAll('#flame-graph .found').length > 0")
    assert "Found in" in tab.run("document.getElementById('flame-status').innerText")


def test_program_frames_only(tab: Browser, pages: dict[str, Path]) -> None:
    """The flame graph and the stacks leave out libraries: callers that are left join."""
    tab.screen(*DESKTOP)
    tab.open(pages["naive-calloc"])
    cells = "[...document.querySelectorAll('#flame-graph div')].map((each) => each.ariaLabel.split(' ')[0])"
    assert "calloc" in tab.run(cells)
    tab.run("document.getElementById('flame-own').click()")
    assert "calloc" not in tab.run(cells) and "round_once" in tab.run(cells)
    assert tab.run("document.getElementById('site-own').checked")
    tab.run("document.querySelector('.site summary').click()")
    tab.until("document.querySelector('.site .stacks') !== null")
    assert "round_once" in tab.run("document.querySelector('.stacks').innerText")
    assert "malloc.c" not in tab.run("document.querySelector('.stacks').innerText")


POINT = """(([name, part, kind]) => {
    const canvas = document.querySelector(`#chart-${name} canvas`), box = canvas.getBoundingClientRect();
    const where = {clientX: box.left + part * box.width, clientY: box.top + 150, bubbles: true, pointerId: 1};
    canvas.setPointerCapture = () => {};
    canvas.dispatchEvent(new PointerEvent(kind, where));
})(arguments[0])"""
STATUS = "document.querySelector('#chart-timeline [role=status]').innerText"


def test_timeline_tells_and_zooms(tab: Browser, pages: dict[str, Path]) -> None:
    """Figures where the pointer is; a part is zoomed in by dragging, by keys and by buttons, in both charts."""
    tab.screen(*DESKTOP)
    tab.open(pages["busy"])
    tab.run(POINT, ["timeline", 0.5, "pointermove"])
    whole = tab.run(STATUS)
    assert "observed" in whole and " %" in whole
    assert tab.run("document.querySelector('#chart-timeline .chart-tip').innerText").splitlines()[0] in whole
    for part, kind in ((0.2, "pointerdown"), (0.4, "pointermove"), (0.4, "pointerup")):
        tab.run(POINT, ["timeline", part, kind])
    tab.run(POINT, ["timeline", 0.5, "pointermove"])
    zoomed = tab.run(STATUS)
    assert zoomed != whole and "observed" in zoomed
    tab.run("document.querySelector('#chart-map canvas').focus()")
    tab.press("0")
    tab.run(POINT, ["timeline", 0.5, "pointermove"])
    assert tab.run(STATUS) == whole, "both charts show the same time"
    tab.press("+")
    tab.run("document.querySelector('#chart-timeline [data-zoom=out]').click()")
    tab.run(POINT, ["timeline", 0.5, "pointermove"])
    assert tab.run(STATUS) == whole


def test_what_changed(tab: Browser, tmp_path: Path) -> None:
    for name, maker in (("before", facts.heap_blocks), ("after", facts.mapped_blocks)):
        maker(tmp_path / f"{name}.memtoll").database.close()
    both = memtoll.diff(tmp_path / "before.memtoll", tmp_path / "after.memtoll", force=True)
    with memtoll.open(tmp_path / "after.memtoll") as rec:
        (tmp_path / "changed.html").write_text(page(rec, changed=both))
    seen = "[...document.querySelectorAll('main > section')].filter((each) => each.offsetHeight).map((each) => each.id)"
    for screen in (DESKTOP, PHONE):
        tab.screen(*screen)
        tab.open(tmp_path / "changed.html")
        assert "verdict" in tab.run(seen) and "change" not in tab.run(seen)
        tab.run("document.querySelector('[data-view=change]').click()")
        assert tab.run(seen) == ["change"] and tab.overflow() == []
        assert "zero.libc" in tab.run("document.querySelector('#change-tolls').innerText")


def test_hostile_names_do_nothing(tab: Browser, pages: dict[str, Path]) -> None:
    tab.screen(*DESKTOP)
    tab.open(pages["hostile"])
    tab.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    while tab.run("!document.getElementById('site-more').hidden"):
        tab.run("document.getElementById('site-more').click()")
    assert tab.run("document.title.startsWith('</script>')")
    assert tab.run("document.querySelectorAll('script').length") == 2
    assert tab.run("document.querySelectorAll('img, iframe, [onerror], [onload]').length") == 0
    assert "\\u202e" in tab.run("document.body.innerText")
    assert not tab.run("/[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.body.innerText)")


def test_scripts_of_others_are_forbidden(tab: Browser, pages: dict[str, Path]) -> None:
    """Should a name get through all the same: the page's policy stops it."""
    tab.screen(*DESKTOP)
    tab.open(pages["cpu-loop"])
    title = tab.run("document.title")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(1)
        tab.run(
            "(() => { const each = document.createElement('script'); each.textContent = 'document.title = 1';"
            " document.body.append(each); window.answers = 0;"
            " for (const name of ['Image', 'fetch']) { const address = `http://127.0.0.1:${arguments[0]}/${name}`;"
            " if (name === 'fetch') fetch(address).catch(() => { window.answers++; });"
            " else { const image = new Image(); image.onerror = () => { window.answers++; }; image.src = address; }"
            " } })()",
            server.getsockname()[1],
        )
        tab.until("window.answers === 2")
        with pytest.raises(TimeoutError):
            server.accept()
    assert tab.run("document.title") == title
    said = tab.complaints()
    assert len(said) >= 3 and all("Content Security Policy" in each for each in said), said
    tab.requests()  # the browser lists those that it stopped


def test_many_sites(tab: Browser, crowd_page: Path) -> None:
    path = crowd_page
    # 419 bytes a site: 40 MiB for 100,000.
    assert path.stat().st_size < CROWD * 419
    for screen in (DESKTOP, PHONE):
        tab.screen(*screen)
        tab.open(path)
        assert tab.run("document.querySelectorAll('*').length") < 12_000, "rows are made on demand"
        assert tab.run("document.getElementById('site-status').innerText").startswith(f"{CROWD:,} sites")
        assert tab.overflow() == []
    tab.run("document.getElementById('site-search').focus()")
    tab.press("part3.c:500")
    tab.until("document.getElementById('site-status').innerText.includes(arguments[0])", f" of {CROWD:,}")
    tab.run("document.querySelector('[data-sort=count]').click()")
    tab.run("document.getElementById('site-more').focus()")
    before = tab.run("document.querySelectorAll('.site').length")
    tab.press(Keys.ENTER)
    assert tab.run("document.querySelectorAll('.site').length") == before + 25
    assert tab.run("document.activeElement === document.querySelectorAll('.site summary')[arguments[0]]", before)


def test_print(tab: Browser, pages: dict[str, Path]) -> None:
    tab.screen(*DESKTOP, dark=True, media="print")
    tab.open(pages["busy"])
    for selector in ("nav", "#site-form", "#flame"):
        assert tab.run(f"getComputedStyle(document.querySelector('{selector}')).display") == "none"
    assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tab.screen(*DESKTOP)
