"""The operator's start imports what it uses, and what it leaves out still works for others."""

import subprocess
import sys
import textwrap


def run(code):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_operator_imports_neither_rich_nor_aiohttp():
    code = """
        import sys
        from service.imports import import_libraries
        import_libraries()
        from service import app, log
        print(*({"rich", "aiohttp", "typer"} & set(sys.modules)))
    """
    assert run(code) == []


def test_a_traceback_is_logged_all_the_same():
    code = """
        from service.imports import import_libraries
        import_libraries()
        import structlog, sys
        from service import log
        for style in ("json", "console"):
            log.configure("info", style, sys.stdout)
            try:
                1 / 0
            except ZeroDivisionError:
                structlog.get_logger().exception("failed")
    """
    assert run(code).count("ZeroDivisionError:") == 2


def test_models_that_are_not_fastapis_are_built_at_once_and_its_own_when_they_are_used():
    code = """
        from service.imports import import_libraries
        import_libraries()
        from fastapi import FastAPI
        from fastapi.openapi.models import Info
        from pydantic import BaseModel
        class Own(BaseModel):
            a: int
        print(Info.__pydantic_complete__, Own.__pydantic_complete__, FastAPI(title="x").openapi()["info"]["title"])
    """
    assert run(code) == ["False", "True", "x"]


def test_rich_can_be_imported_afterwards():
    code = """
        from service.imports import import_libraries
        import_libraries()
        import rich.console
        print(rich.console.Console.__name__)
    """
    assert run(code) == ["Console"]


def test_garbage_is_collected_again_after_the_imports():
    code = """
        import gc
        from service.imports import without_collection
        with without_collection():
            inside = gc.isenabled()
        print(inside, gc.isenabled())
    """
    assert run(code) == ["False", "True"]
