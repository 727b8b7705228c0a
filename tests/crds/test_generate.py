import yaml

from crds.generate import CRD_FILE, REFERENCE_FILE, main
from crds.providers import ProviderPolicy
from crds.schema import custom_resource_definition


def test_the_generated_files_are_up_to_date():
    assert main(["--check"]) == 0


def test_a_stale_or_missing_file_is_named(tmp_path, capsys):
    assert main(["--root", str(tmp_path)]) == 0
    assert main(["--root", str(tmp_path), "--check"]) == 0
    (tmp_path / CRD_FILE).write_text("old", encoding="utf-8")
    (tmp_path / REFERENCE_FILE).unlink()
    assert main(["--root", str(tmp_path), "--check"]) == 1
    printed = capsys.readouterr().err
    assert str(CRD_FILE) in printed
    assert str(REFERENCE_FILE) in printed


def test_a_crd_can_be_printed_for_another_allowlist(tmp_path, capsys):
    assert main(["--root", str(tmp_path), "--print-crd", "--infrastructure-groups", "metal.example.com"]) == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert printed == custom_resource_definition(ProviderPolicy(infrastructure_groups=frozenset({"metal.example.com"})))
    assert not list(tmp_path.iterdir())


def test_the_reference_names_every_field(tmp_path):
    main(["--root", str(tmp_path)])
    page = (tmp_path / REFERENCE_FILE).read_text(encoding="utf-8")
    for field in ("hoursOfDay", "killIfCommands", "effect", "shutdownStartedAt", "machineUID"):
        assert f"`{field}`" in page
