import re

import pytest

from local import pins
from local.build import flags
from local.errors import LocalError

PROVIDERS = ("kubeadm/go.mod", "devmachine/go.mod")


def test_the_toolchain_we_install_satisfies_go_mod():
    assert pins.numbers(pins.go_pinned()) >= pins.go_needed()


def test_every_staging_module_is_of_the_kubernetes_that_is_built():
    staging = pins.kubernetes().replace("v1.", "v0.", 1)
    replaced = re.findall(r"^\tk8s\.io/\S+ => \S+ (\S+)$", (pins.GOMOD / "go.mod").read_text(), re.MULTILINE)

    assert len(replaced) > 30
    assert set(replaced) == {staging}


@pytest.mark.parametrize("module", ["sigs.k8s.io/cluster-api", "sigs.k8s.io/controller-runtime", "k8s.io/client-go"])
def test_cluster_apis_providers_are_of_the_cluster_api_that_is_built(module):
    used = [
        re.findall(rf"^\t{module} (v\S+)", (pins.GOMOD / name).read_text(), re.MULTILINE)[0]
        for name in ("go.mod", *PROVIDERS)
    ]
    assert len(set(used)) == 1, used


def test_the_servers_are_stamped_with_their_version():
    stamps = flags()[-1]
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        assert f"-X {package}.gitVersion={pins.kubernetes()} " in stamps + " "
        assert f"-X {package}.gitMajor=1 " in stamps


def test_a_damaged_installation_says_so(monkeypatch, tmp_path):
    (tmp_path / "toolchain.txt").write_text("")
    monkeypatch.setattr(pins, "GOMOD", tmp_path)

    with pytest.raises(LocalError, match=r"toolchain\.txt is damaged"):
        pins.go_pinned()
