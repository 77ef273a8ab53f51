# SPDX-License-Identifier: GPL-2.0
"""The rows of a large table straight from the pages of a recording's file.

SQLite hands out rows one value at a time. For 10 million fault runs of 13 columns that takes, in
processor time on the development machine (2 cores, busy): 64 s with Python's cursor until the
DataFrame is there, 26 s with ADBC's SQLite driver by way of Arrow, of it 13 s in the driver;
connectorx, 12 s in the driver, keeps everything twice and at 64 bits a value. Here the columns of
some hundred pages are gathered at once by numpy: 10 s, on as many threads as there are processors,
with packages that Debian has.

What is read is laid down at https://www.sqlite.org/fileformat2.html (sections 1.6, 2.1), and has
not changed since 2004. Only the plain case is taken: a rowid table, UTF-8, no write-ahead log, rows
that fit in their page, values that are integers or short texts. Anything else raises Unusual, and
the caller reads through SQLite.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Pages decoded at once: their rows fit in a processor's cache.
CHUNK: Final = 256
THREADS: Final = 4
# A row's header must have one byte for each column (serial types below 128: texts to 57 bytes).
ONE_BYTE: Final = 128
# Different texts of a column among the rows of one chunk.
TEXTS: Final = 256
# Room before and after the pages, for reads of 8 bytes that begin anywhere in them.
MARGIN: Final = 64

INTERIOR: Final = 5
LEAF: Final = 13
DEEPEST: Final = 20

# Bytes of a value by serial type.
SIZES: Final = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0, *((t - 12) // 2 for t in range(12, ONE_BYTE))], np.int64)
REAL: Final = 7
ONE: Final = 9


class Unusual(Exception):
    """The table is not of the plain kind that is read here."""


class Pages:
    """A database file that does not change meanwhile, by pages."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        header = os.pread(descriptor, 100, 0)
        if len(header) < 100:
            raise Unusual("no header")
        (size,) = struct.unpack_from(">H", header, 16)
        self.size = 65536 if size == 1 else int(size)
        self.usable = self.size - header[20]
        self.count = os.fstat(descriptor).st_size // self.size if self.size >= 512 else 0
        if header[18] != 1 or header[19] != 1:
            raise Unusual("a write-ahead log")
        if struct.unpack_from(">I", header, 56) != (1,):
            raise Unusual("not UTF-8")

    def read(self, first: int, count: int) -> bytes:
        """So many pages from one on; pages count from 1."""
        data = os.pread(self.descriptor, count * self.size, (first - 1) * self.size)
        if len(data) != count * self.size:
            raise Unusual("truncated")
        return data

    def gather(self, pages: Array) -> Array:
        """These pages one after the other, with a margin at both ends."""
        buffer = np.zeros(len(pages) * self.size + 2 * MARGIN, np.uint8)
        inner = buffer[MARGIN : MARGIN + len(pages) * self.size].reshape(-1, self.size)
        first, last = int(pages.min()), int(pages.max())
        if last - first < 4 * len(pages):
            span = np.frombuffer(self.read(first, last - first + 1), np.uint8).reshape(-1, self.size)
            inner[:] = span[pages - first]
        else:
            for row, page in zip(inner, pages):
                row[:] = np.frombuffer(self.read(int(page), 1), np.uint8)
        return buffer

    def leaves(self, root: int) -> Array:
        """Numbers of a table's leaf pages, in the order of its row ids."""
        level = np.array([root], np.int64)
        for _ in range(DEEPEST):
            kind = self.read(int(level[0]), 1)[100 if level[0] == 1 else 0]
            if kind == LEAF:
                return level
            level = np.concatenate([self._children(int(page)) for page in level])
            if len(level) > self.count or level.min() < 1 or level.max() > self.count:
                raise Unusual("no tree of a table")
        raise Unusual("too deep")

    def _children(self, page: int) -> Array:
        data = self.read(page, 1)
        start = 100 if page == 1 else 0
        kind, _, cells, _, _, right = struct.unpack_from(">BHHHBI", data, start)
        if kind != INTERIOR or start + 12 + 2 * cells > self.size:
            raise Unusual("no tree of a table")
        pointers = struct.unpack_from(f">{cells}H", data, start + 12)
        return np.array([struct.unpack_from(">I", data, at)[0] for at in pointers] + [right], np.int64)


def read_table(path: str | os.PathLike[str], root: int, columns: int, wanted: dict[int, str]) -> Iterator[list[Any]]:
    """Chunks of a table's rows, in their order: a list with one entry for each wanted column.

    root: the table's root page; columns: how many it has. wanted: column number -> dtype of an
    integer array, or "text": (int32 codes, list of texts). The caller holds a read lock on the
    database. Unusual: read it otherwise, and drop the chunks so far.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pages = Pages(descriptor)
        leaves = pages.leaves(root)
        parts = [leaves[first : first + CHUNK] for first in range(0, len(leaves), CHUNK)]
        threads = max(1, min(THREADS, os.cpu_count() or 1))
        with ThreadPoolExecutor(threads) as pool:
            # Some parts ahead, not all: what is decoded has to be taken first.
            for start in range(0, len(parts), 16 * threads):
                yield from pool.map(
                    lambda part: _decode(pages, part, columns, wanted), parts[start : start + 16 * threads]
                )
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise Unusual(f"a damaged page ({error})") from error
    finally:
        os.close(descriptor)


def _decode(pages: Pages, numbers: Array, columns: int, wanted: dict[int, str]) -> list[Any]:
    buffer = pages.gather(numbers)
    twos: Array = np.ndarray((len(buffer) - 1,), ">u2", buffer, strides=(1,))
    eights: Array = np.ndarray((len(buffer) - 7,), ">i8", buffer, strides=(1,))
    at, ends = _rows(pages, buffer, twos, len(numbers))
    if len(at) == 0:
        return [(np.empty(0, "int32"), []) if kind == "text" else np.empty(0, kind) for kind in wanted.values()]
    if (buffer[at] != columns + 1).any():
        raise Unusual("rows with other headers")
    values: dict[int, Any] = {}
    value = at + (columns + 1)
    for column in range(columns):
        at += 1
        kinds = buffer[at]
        if kinds.max() >= ONE_BYTE:
            raise Unusual("a long text")
        sizes = SIZES.take(kinds)
        if column in wanted:
            if wanted[column] == "text":
                values[column] = _texts(buffer, eights, value, kinds, sizes)
            else:
                values[column] = _integers(eights, value, kinds, sizes).astype(wanted[column], copy=False)
        value += sizes
    if (value != ends).any():
        raise Unusual("a damaged row")
    return [values[column] for column in wanted]


def _rows(pages: Pages, buffer: Array, twos: Array, count: int) -> tuple[Array, Array]:
    """Where the header of each row begins in the buffer, and where the row ends."""
    base = np.arange(count, dtype=np.int64) * pages.size + MARGIN
    if (buffer[base] != LEAF).any():
        raise Unusual("no leaf")
    cells = twos[base + 3].astype(np.int64)
    if int(cells.max()) * 2 + 8 > pages.size:
        raise Unusual("a damaged page")
    ends = np.cumsum(cells)
    starts = ends - cells
    page = np.repeat(np.arange(count), cells)
    pointers = (np.arange(len(page)) - starts[page]) * 2 + base[page] + 8
    cell = twos[pointers].astype(np.int64)
    if len(cell) and not 8 <= int(cell.min()) <= int(cell.max()) <= pages.size - 4:
        raise Unusual("a damaged page")
    cell += base[page]
    at = cell + 1
    # The length of the row: one byte, or two.
    lengths = buffer[cell].astype(np.int64)
    long = np.flatnonzero(buffer[cell] >= ONE_BYTE)
    if len(long):
        second = buffer[at[long]].astype(np.int64)
        lengths[long] = (lengths[long] - ONE_BYTE) * ONE_BYTE + second
        if (second >= ONE_BYTE).any() or (lengths > pages.usable - 35).any():
            raise Unusual("rows larger than their page")
        at[long] += 1
    # The row id: they rise, so where the first and the last of a page are as long all between are.
    full = np.flatnonzero(cells)
    first, last = _id_length(buffer, at[starts[full]]), _id_length(buffer, at[ends[full] - 1])
    skips = np.zeros(count, np.int64)
    skips[full] = first
    skip = skips[page]
    for number in full[first != last]:
        rows = slice(int(starts[number]), int(ends[number]))
        skip[rows] = _id_length(buffer, at[rows])
    at += skip
    row_ends = at + lengths
    if (row_ends - base[page] > pages.usable).any():
        raise Unusual("a damaged page")
    return at, row_ends


def _id_length(buffer: Array, at: Array) -> Array:
    length = np.ones(len(at), np.int64)
    more = np.ones(len(at), np.bool_)
    for byte in range(8):
        more &= buffer[at + byte] >= ONE_BYTE
        if not more.any():
            break
        length += more
    return length


def _integers(eights: Array, at: Array, kinds: Array, sizes: Array) -> Array:
    if kinds.min() < 1 or kinds.max() > ONE or (kinds == REAL).any():
        raise Unusual("no integer")
    values = eights[at].astype(np.int64)
    none = np.flatnonzero(sizes == 0)  # types 8 and 9: the numbers 0 and 1 themselves
    values >>= (8 - np.maximum(sizes, 1)) * 8
    values[none] = kinds[none] == ONE
    return values


def _texts(buffer: Array, eights: Array, at: Array, kinds: Array, sizes: Array) -> tuple[Array, list[str]]:
    if kinds.min() < LEAF or not (kinds & 1).all():
        raise Unusual("no text")
    words = []
    for byte in range(0, max(int(sizes.max()), 1), 8):
        here = np.clip(sizes - byte, 0, 8)
        word = eights[at + byte].astype(np.uint64) >> ((8 - np.maximum(here, 1)) * 8).astype(np.uint64)
        words.append(np.where(here > 0, word, 0))
    codes = np.full(len(at), -1, np.int32)
    texts: list[str] = []
    left = np.arange(len(at))
    while len(left):
        if len(texts) == TEXTS:
            raise Unusual("many texts")
        one = left[0]
        same = kinds == kinds[one]
        for word in words:
            same &= word == word[one]
        codes[same] = len(texts)
        start = int(at[one])
        texts.append(buffer[start : start + int(sizes[one])].tobytes().decode(errors="replace"))
        left = np.flatnonzero(codes < 0)
    return codes, texts
