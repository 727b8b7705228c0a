"""What the image would hold and do, without a container engine: the same script fills a folder, and that is run.

Files are restricted as a pod's are: nothing is writable, no capability is left, the environment is bare.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from crds import names
from local.binaries import Assets
from local.cluster import LocalCluster
from service.kube.errors import Rejected
from service.kube.resource import SCHEDULED_MACHINES
from tests.integration.api_door import served
from tests.integration.gate import Gate, is_ready
from tests.service.process import Process, started
from tests.waiting import until
from tests.webhooks.reviews import machine

CHECKOUT = Path(__file__).parents[1]
DOCKERFILE = (CHECKOUT / "Dockerfile").read_text(encoding="utf-8")
HADOLINT = shutil.which("hadolint", path=str(Path(sys.executable).parent))
SETPRIV = shutil.which("setpriv")
FETCHING = ("PATH", "HOME", "SSL_CERT_FILE", "XDG_CACHE_HOME", "http_proxy", "https_proxy", "no_proxy")


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with what follows them, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in text.splitlines() if line.strip()]


def last_stage() -> list[tuple[str, str]]:
    every = instructions()
    return every[max(index for index, (word, _) in enumerate(every) if word == "FROM") :]


def in_the_context() -> list[str]:
    """The files that .dockerignore lets through, of those under version control."""
    tracked = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=CHECKOUT, text=True)
    patterns = [line for line in (CHECKOUT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    return [name for name in tracked.splitlines() if _let_through(name, patterns) and (CHECKOUT / name).exists()]


def _let_through(name: str, patterns: list[str]) -> bool:
    """As Docker reads these patterns: the last one that matches the file or a folder above it decides."""
    let = True
    parts = Path(name).parts
    for pattern in patterns:
        wanted, plain = pattern.startswith("!"), pattern.lstrip("!")
        if plain.startswith("**/"):
            hit = any(fnmatchcase(part, plain[3:]) for part in parts)
        else:
            depth = plain.count("/") + 1
            hit = fnmatchcase("/".join(parts[:depth]), plain) and len(parts) >= depth
        let = wanted if hit else let
    return let


class Image:
    """The folder that the image would have at /opt/5spot, and how a pod would run it."""

    def __init__(self, root: Path) -> None:
        self.root, self.empty = root, root / "read-only"

    @property
    def program(self) -> list[str]:
        # Root without capabilities may write no more than the files' modes say; other users may not anyway.
        bare = [SETPRIV, "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"] if SETPRIV else []
        return [*(bare if os.geteuid() == 0 else []), str(self.root / "opt" / "bin" / "5spot")]

    @property
    def env(self) -> dict[str, str]:
        """What the Dockerfile sets, and nothing of ours; there is no place for temporary files."""
        given = dict(pair.split("=", 1) for word, rest in last_stage() if word == "ENV" for pair in rest.split())
        path = given.pop("PATH").replace("/opt/5spot", str(self.root / "opt")).replace(":$PATH", "")
        return {**given, "PATH": path, "TMPDIR": str(self.empty), "HOME": str(self.empty)}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [*self.program, *words]
        return subprocess.run(command, env=self.env, cwd=self.empty, text=True, capture_output=True, check=False)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """Made from what the build's context holds, by the script that the Dockerfile runs."""
    root = tmp_path_factory.mktemp("image")
    for name in in_the_context():
        (root / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, root / "src" / name)
    env = {key: value for key, value in os.environ.items() if key in FETCHING or key.startswith(("UV_", "PIP_"))}
    env |= {"PYTHON3": sys.executable, "PATH": f"{Path(sys.executable).parent}:{env['PATH']}"}
    subprocess.run([root / "src" / ".ci" / "install", root / "opt"], env=env, check=True)
    made = Image(root)
    made.empty.mkdir()
    writable = [made.empty, *(path for path in (root / "opt").rglob("*") if not path.is_symlink())]
    for path in writable:
        path.chmod(path.stat().st_mode & ~0o222)
    yield made
    for path in writable:
        path.chmod(path.stat().st_mode | 0o200)


@pytest.mark.skipif(HADOLINT is None, reason="there is no hadolint for this platform")
def test_hadolint_finds_nothing() -> None:
    done = subprocess.run([str(HADOLINT), "Dockerfile"], cwd=CHECKOUT, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_every_base_is_named_by_its_digest() -> None:
    arguments = dict(rest.split("=", 1) for word, rest in instructions() if word == "ARG")
    stages = {rest.split(" AS ")[1] for word, rest in instructions() if word == "FROM" and " AS " in rest}
    bases = {rest.split(" AS ")[0] for word, rest in instructions() if word == "FROM"} - stages - {"scratch"}
    assert bases == {"${PYTHON}"}
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+@sha256:[0-9a-f]{64}", arguments["PYTHON"])


def test_it_runs_as_a_numbered_user_without_a_health_check_of_its_own() -> None:
    words = dict(last_stage())
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", words["USER"])
    assert words["ENTRYPOINT"] == '["5spot"]'
    assert not {"HEALTHCHECK", "VOLUME", "RUN", "ADD"} & words.keys()
    assert words["COPY"] == "--from=build /opt/5spot /opt/5spot"


def test_its_python_is_one_that_we_support() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    wanted = tuple(map(int, project["requires-python"].removeprefix(">=").split(".")))
    found = re.search(r"python:(\d+)\.(\d+)", DOCKERFILE)
    assert found is not None
    assert tuple(map(int, found.groups())) >= wanted


def test_the_context_holds_the_packages_and_what_builds_them_and_nothing_else() -> None:
    tops = {name.partition("/")[0] for name in in_the_context()}
    packages = {"agent", "certs", "crds", "local", "service", "webhooks"}
    assert tops == packages | {".ci", "pyproject.toml", "uv.lock", "README.md", "LICENSE"}


def test_it_explains_itself(image: Image) -> None:
    result = image.run("--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert "Usage: 5spot" in result.stdout
    assert image.run("--version").stdout.startswith("5spot ")


def test_it_judges_manifests(image: Image) -> None:
    good = image.run("validate", "-f", str(CHECKOUT / "examples" / "office-hours.yaml"))
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.endswith("allowed\n")


def test_it_holds_what_the_lock_names_and_nothing_for_developers(image: Image) -> None:
    script = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    done = subprocess.check_output([image.root / "opt" / "bin" / "python", "-c", script], text=True)
    found = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in json.loads(done).items()}
    listed = components(image.root)
    assert {name: version for name, version in found.items() if name != "fivespot"}.items() <= listed.items()
    assert "fivespot" in found
    assert not {"pytest", "mypy", "ruff", "cronsim", "hatchling", "pip", "uv", "sphinx"} & (
        found.keys() | listed.keys()
    )


def components(folder: Path) -> dict[str, str]:
    """What the list of the image's contents says."""
    subprocess.run([sys.executable, CHECKOUT / ".ci" / "sbom", folder / "5spot.cdx.json"], check=True)
    listed = json.loads((folder / "5spot.cdx.json").read_text())
    return {each["name"]: each["version"] for each in listed["components"]}


def test_the_list_of_contents_is_cyclonedx_with_a_hash_for_everything_and_the_same_each_time(tmp_path: Path) -> None:
    components(tmp_path)
    text = (tmp_path / "5spot.cdx.json").read_text()
    listed = json.loads(text)
    assert (listed["bomFormat"], listed["metadata"]["component"]["name"]) == ("CycloneDX", "fivespot")
    assert re.fullmatch(r"\d+\.\d+\.\d+", listed["metadata"]["component"]["version"])
    assert all(reference["hashes"] for each in listed["components"] for reference in each["externalReferences"])
    components(tmp_path)
    assert (tmp_path / "5spot.cdx.json").read_text() == text


def test_all_files_have_one_time_and_modules_are_compiled(image: Image) -> None:
    files = [path for path in (image.root / "opt").rglob("*") if path.is_file() and not path.is_symlink()]
    assert {int(path.stat().st_mtime) for path in files} == {315532800}
    compiled = next((image.root / "opt" / "lib").rglob("service/__pycache__/cli.*.pyc"))
    # Hashes that are not checked, instead of times: the same sources give the same bytes.
    assert compiled.read_bytes()[4:8] == (1).to_bytes(4, "little")


def test_the_installation_does_not_say_where_and_when_it_was_made(image: Image) -> None:
    (about,) = (image.root / "opt" / "lib").glob("python3*/site-packages/fivespot-*.dist-info")
    assert not {"direct_url.json", "uv_cache.json"} & {path.name for path in about.iterdir()}
    listed = {line.split(",")[0] for line in (about / "RECORD").read_text().splitlines()}
    assert [name for name in listed if not (about.parent / name).exists()] == []


@pytest.fixture
async def door(small_cluster: LocalCluster, assets: Assets, namespace: str) -> AsyncIterator[Gate]:
    async with served(small_cluster) as client:
        yield Gate(small_cluster, assets, namespace, client)


def reachable(image: Image, cluster: LocalCluster, folder: Path) -> Path:
    """A kubeconfig that refers to files, as a pod's service account does: inline ones would have to be written out."""
    given: dict[str, Any] = yaml.safe_load(Path(cluster.kubeconfig).read_text())
    (folder / "ca.crt").write_bytes(cluster.authority.pem)
    for each in given["clusters"]:
        each["cluster"].pop("certificate-authority-data", None)
        each["cluster"]["certificate-authority"] = str(folder / "ca.crt")
    (folder / "kubeconfig").write_text(yaml.safe_dump(given))
    return folder / "kubeconfig"


async def test_it_runs_until_ready_answers_webhooks_and_ends_on_a_signal(
    image: Image, door: Gate, small_cluster: LocalCluster, tmp_path: Path
) -> None:
    kubeconfig = reachable(image, small_cluster, tmp_path)
    words = [word for word in door.flags(kubeconfig=str(kubeconfig)) if word != "--no-controller"]
    async with started(words, program=image.program, env=image.env, cwd=image.empty) as process:
        await until(lambda: is_ready(process), within=90)
        await door.register(await process.port("webhooks"))
        try:
            await until(door.published)
            await until(door.asked)
            with pytest.raises(Rejected, match=r"admission webhook \"default\.scheduledmachines"):
                await _store(door, {**machine()["spec"], "clusterName": "production", "bootstrapSpec": _elsewhere()})
            made = await _store(door, machine()["spec"])
            assert made["metadata"]["finalizers"] == [names.FINALIZER]
        finally:
            await door.unregister()
        assert "fivespot_" in await _metrics(process)
        process.child.send_signal(signal.SIGTERM)
        assert await process.ended() == 0
    assert not [event for event in process.events if event.get("level") == "error"]
    assert not list(image.empty.iterdir())
    await door.client.patch(SCHEDULED_MACHINES, "probe", {"metadata": {"finalizers": None}}, namespace=door.namespace)


def _elsewhere() -> dict[str, Any]:
    return {**machine()["spec"]["bootstrapSpec"], "namespace": "kube-system"}


async def _store(door: Gate, spec: dict[str, Any]) -> dict[str, Any]:
    body = {**machine(), "metadata": {"name": "probe"}, "spec": spec}
    return await door.client.create(SCHEDULED_MACHINES, body, namespace=door.namespace)


async def _metrics(process: Process) -> str:
    async with httpx.AsyncClient() as client:
        return (await client.get(f"http://127.0.0.1:{await process.port('metrics')}/metrics")).text
