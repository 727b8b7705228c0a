"""Imports the few parts of kubernetes_asyncio that the client uses, without its thousand other modules.

Importing the whole package loads every generated model and API class: two seconds and 70 MB for nothing, as the client
works with plain JSON. It only needs the code that reads kubeconfigs and authenticates.
"""

import importlib
import importlib.machinery
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

_PACKAGE = "kubernetes_asyncio"
_HTTP = "aiohttp"
# Packages whose __init__ imports the generated code; their other modules can be imported without it.
_STUBBED = (_PACKAGE, f"{_PACKAGE}.client", f"{_PACKAGE}.client.models")


class Library(NamedTuple):
    """What the client uses of the package: a settings object and the two loaders that fill it."""

    Configuration: Any
    ConfigException: Any
    load_kube_config: Any
    load_incluster_config: Any


def load() -> Library:
    """Imports the parts that are used.

    A later import of the package in this process gets all of it: the stubs are removed from `sys.modules` at the end.
    """
    if _PACKAGE in sys.modules:
        return _import_parts()
    try:
        return _load_lean()
    except (ImportError, AttributeError):  # a release with another layout: costs more, but works
        return _import_parts()


def _import_parts() -> Library:
    config = importlib.import_module(f"{_PACKAGE}.config")
    return Library(
        Configuration=importlib.import_module(f"{_PACKAGE}.client.configuration").Configuration,
        ConfigException=config.ConfigException,
        load_kube_config=config.load_kube_config,
        load_incluster_config=config.load_incluster_config,
    )


def _load_lean() -> Library:
    try:
        for name in _STUBBED:
            sys.modules[name] = _stub(name)
        client: Any = sys.modules[f"{_PACKAGE}.client"]
        client.Configuration = importlib.import_module(f"{_PACKAGE}.client.configuration").Configuration
        client.ApiClient = object  # functions name it as their result, and are not called
        with _late_aiohttp():
            return _import_parts()
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == _PACKAGE]:
            del sys.modules[name]


@contextmanager
def _late_aiohttp() -> Iterator[None]:
    """Modules imported meanwhile import aiohttp when they use it: for a login by OpenID Connect, which is rare."""
    if _HTTP in sys.modules:
        yield
        return
    late = sys.modules[_HTTP] = _Late(_HTTP)
    try:
        yield
    finally:
        late.in_use = True
        del sys.modules[_HTTP]


class _Late(types.ModuleType):
    """Stands for a module that is imported when something of it is used; until `in_use`, only annotations are."""

    in_use = False

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name) if self.in_use else object


def _stub(name: str) -> types.ModuleType:
    spec = importlib.machinery.PathFinder.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"{_PACKAGE} is not installed")
    parts = name.split(".")[1:]
    module = types.ModuleType(name)
    module.__path__ = ["/".join([location, *parts]) for location in spec.submodule_search_locations]
    return module
