"""The platform's version: that of the package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("streamjoin")
except PackageNotFoundError:  # run from a folder that was not installed
    VERSION = "0"
