"""The few parts of kubernetes_asyncio that we use, without the thousand modules that we do not.

Importing the package loads every model and API class it has generated: two seconds and 70 MB that a process which
speaks plain JSON pays for nothing. Only reading kubeconfigs and signing in is wanted here.
"""

import importlib
import importlib.machinery
import sys
import types
from typing import Any, NamedTuple

_PACKAGE = "kubernetes_asyncio"
# Packages whose __init__ pulls in the generated code; their other modules import fine by themselves.
_HOLLOW = (_PACKAGE, f"{_PACKAGE}.client", f"{_PACKAGE}.client.models")


class Library(NamedTuple):
    """What we borrow: a settings object and the two loaders that fill it."""

    Configuration: Any
    ConfigException: Any
    load_kube_config: Any
    load_incluster_config: Any


def load() -> Library:
    """Imports the borrowed parts.

    Whoever else imports the package in this process gets it whole: the hollow stand-ins leave with us.
    """
    if _PACKAGE in sys.modules:
        return _borrow()
    try:
        return _load_lean()
    except (ImportError, AttributeError):  # a release with another layout: dearer, but it works
        return _borrow()


def _borrow() -> Library:
    config = importlib.import_module(f"{_PACKAGE}.config")
    return Library(
        Configuration=importlib.import_module(f"{_PACKAGE}.client.configuration").Configuration,
        ConfigException=config.ConfigException,
        load_kube_config=config.load_kube_config,
        load_incluster_config=config.load_incluster_config,
    )


def _load_lean() -> Library:
    try:
        for name in _HOLLOW:
            sys.modules[name] = _hollow(name)
        client: Any = sys.modules[f"{_PACKAGE}.client"]
        client.Configuration = importlib.import_module(f"{_PACKAGE}.client.configuration").Configuration
        client.ApiClient = importlib.import_module(f"{_PACKAGE}.client.api_client").ApiClient
        return _borrow()
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == _PACKAGE]:
            del sys.modules[name]


def _hollow(name: str) -> types.ModuleType:
    spec = importlib.machinery.PathFinder.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"{_PACKAGE} is not installed")
    parts = name.split(".")[1:]
    module = types.ModuleType(name)
    module.__path__ = ["/".join([location, *parts]) for location in spec.submodule_search_locations]
    return module
