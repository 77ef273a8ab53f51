# SPDX-License-Identifier: GPL-2.0
"""Everything this package raises by itself. Each message is one line: what is wrong, what to do."""

from __future__ import annotations


class Error(Exception):
    """Base of all errors of this package. A file that cannot be opened at all is an OSError, as with open()."""


class NotARecording(Error):
    """The file is something else."""


class NewerFormat(Error):
    """The recording was made by a newer memtoll than this package knows."""


class IncompleteRecording(Error):
    """The tracer has not finished it, or was killed, and incomplete=False was asked for."""


class DamagedRecording(Error):
    """A recording whose tables cannot be read: truncated or overwritten."""


class NotComparable(Error):
    """Two recordings that do not measure the same; str() has the reasons."""


class MissingExtra(Error):
    """An optional package is needed; the message says how to install it."""
