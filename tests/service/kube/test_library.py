"""Borrowing from kubernetes_asyncio without loading all of it."""

import subprocess
import sys
import textwrap


def run(code):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_generated_models_are_not_imported():
    code = """
        import gc
        from service.kube.library import load
        library = load()
        assert all(library)
        classes = [o for o in gc.get_objects() if isinstance(o, type)]
        print(sum("kubernetes_asyncio.client.models" in str(o.__dict__.get("__module__")) for o in classes))
    """
    assert run(code) == "0"


def test_others_can_still_import_the_whole_package_and_then_it_is_used():
    code = """
        from service.kube.library import load
        load()
        import kubernetes_asyncio
        assert kubernetes_asyncio.client.V1Pod
        print(load().Configuration is kubernetes_asyncio.client.Configuration)
    """
    assert run(code) == "True"


def test_a_login_by_openid_connect_still_works_and_only_it_imports_aiohttp():
    code = """
        import asyncio, sys
        from service.kube.library import load
        load_kube_config = load().load_kube_config
        assert "aiohttp" not in sys.modules
        requestor = load_kube_config.__globals__["KubeConfigLoader"]._refresh_oidc.__globals__["OpenIDRequestor"]

        async def refresh():
            try:
                await requestor("id", "secret", "https://127.0.0.1:1").refresh_token("token")
            except Exception as error:
                print(type(error).__name__)

        asyncio.run(refresh())
        assert "aiohttp" in sys.modules
    """
    assert run(code) == "ClientConnectorError"
