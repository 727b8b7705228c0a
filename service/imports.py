"""Imports for the operator's start, without what takes time and is not used; called before its modules are imported.

Where a later release of a library is made otherwise, nothing is lost but time.
"""

import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Modules are no garbage: a tenth of the time that importing them takes goes into looking for some."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def import_libraries() -> None:
    """Imports the libraries that load more than the operator uses of them."""
    _import_structlog()
    _import_fastapi()


def _import_structlog() -> None:
    """Without rich, which would colour tracebacks: ours are plain."""
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment] # makes the import fail, as if it were not installed
    try:
        importlib.import_module("structlog")
    finally:
        del sys.modules["rich"]


def _import_fastapi() -> None:
    """Without building the models of OpenAPI documents: none of our servers has one."""
    base = importlib.import_module("pydantic").BaseModel
    base.model_config["defer_build"] = True
    try:
        importlib.import_module("fastapi")
    finally:
        del base.model_config["defer_build"]
