import json
import subprocess
import sys

HEAVY = ("aiohttp", "asyncio", "fastapi", "httpx", "kubernetes_asyncio", "pydantic", "service.kube", "yaml")


def python(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *arguments], check=False, capture_output=True, text=True, timeout=30, env={})


def test_the_agent_imports_nothing_heavy():
    code = f"import sys, agent.__main__; print([name for name in {HEAVY} if name in sys.modules])"
    assert python("-c", code).stdout.strip() == "[]"


def test_help_explains_itself():
    done = python("-m", "agent", "--help")
    assert done.returncode == 0
    assert "never stops a process" in " ".join(done.stdout.split())


def test_without_a_node_name_it_says_what_to_set():
    done = python("-m", "agent")
    assert done.returncode == 2
    assert "NODE_NAME" in done.stderr


def test_it_is_a_subcommand_of_the_main_command():
    done = python("-m", "service", "agent", "--help")
    assert done.stdout.startswith("Usage: 5spot agent")


def test_events_that_are_insisted_on_and_refused_end_it_with_an_explanation():
    elsewhere = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-m", "agent"]
    flags = ["--node=a", "--server=https://127.0.0.1:1", "--source=events"]
    done = subprocess.run([*elsewhere, *flags], check=False, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    last = json.loads(done.stderr.splitlines()[-1])
    assert last["event"] == "stopped"
    assert "network namespace" in last["problem"]
