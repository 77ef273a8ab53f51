# SPDX-License-Identifier: GPL-2.0
"""Optional packages: looked for when they are needed, named when they are missing."""

from __future__ import annotations

import importlib
from types import ModuleType

from .errors import MissingExtra


def need(extra: str, module: str) -> ModuleType:
    """The imported module of a named extra of this package; MissingExtra with the way to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"this needs {module}, which is not installed: pip install 'memtoll[{extra}]' ({error})"
        ) from error


def have(module: str) -> bool:
    """Whether a module of an extra can be imported."""
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True
