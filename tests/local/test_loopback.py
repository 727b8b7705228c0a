"""Nothing of a control plane can be reached from the network: neither by what is built, nor by how it is started."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import binaries
from local.binaries import Assets
from local.errors import LocalError
from local.loopback import WEBHOOK
from local.plane import ControlPlane
from local.progress import Progress
from tests.local.fake_go import FakeGo

LISTENS = "0A"
LOOPBACK = "0100007F"


@pytest.fixture
def go(tmp_path: Path) -> FakeGo:
    fake = FakeGo(tmp_path)
    fake.install(before_build=f"cp controller-runtime/{WEBHOOK.file} {tmp_path}/built.go")
    return fake


def test_the_library_that_opens_the_port_is_built_with_our_change_and_stays_as_it_is(go: FakeGo) -> None:
    binaries.ensure(Progress(io.StringIO()), go.environ())

    assert f"mod edit -replace={WEBHOOK.module}=./controller-runtime" in go.log.read_text().splitlines()
    assert (go.root / "built.go").read_text() == WEBHOOK.meant
    assert (go.root / "modules" / WEBHOOK.module / WEBHOOK.file).read_text() == WEBHOOK.written


def test_a_library_that_opens_its_port_otherwise_is_not_built_unchanged(go: FakeGo) -> None:
    (go.root / "modules" / WEBHOOK.module / WEBHOOK.file).write_text("package webhook")
    with pytest.raises(LocalError, match="opens its port in a new way"):
        binaries.ensure(Progress(io.StringIO()), go.environ())
    assert go.builds() == 0


def test_every_port_of_the_whole_control_plane_is_on_loopback(plane: ControlPlane, assets: Assets) -> None:
    if assets.etcd.parent.name != binaries.key():
        pytest.skip("these programs were not built by us and may listen on other addresses")
    ports = {server.name: list(listening(server.pid)) for server in plane.servers if server.pid}

    assert {"management-apiserver", "management-capi", "workload-apiserver", "workload-kwok"} <= {
        name for name, addresses in ports.items() if addresses
    }
    assert {address for addresses in ports.values() for address in addresses} == {LOOPBACK}


def listening(pid: int) -> Iterator[str]:
    """The addresses on which a process accepts connections, as the kernel writes them."""
    sockets = {target(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == LISTENS and f"socket:[{inode}]" in sockets:
                yield local.partition(":")[0]


def target(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except FileNotFoundError:  # closed since
        return ""
