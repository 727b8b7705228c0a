import os
import tarfile
from pathlib import Path

from release import archive


def test_an_archive_does_not_depend_on_the_order_or_the_time_of_its_files(tmp_path: Path):
    archive.pack({"b": b"2", "a": b"1"}, tmp_path / "one.tgz")
    archive.pack({"a": b"1", "b": b"2"}, tmp_path / "two.tgz")
    assert (tmp_path / "one.tgz").read_bytes() == (tmp_path / "two.tgz").read_bytes()
    assert archive.unpack(tmp_path / "one.tgz") == {"a": b"1", "b": b"2"}


def test_a_folders_archive_names_its_files_and_forgets_owner_mode_and_time(tmp_path: Path):
    for name, moment, mode in (("one", 1, 0o600), ("two", 2, 0o777)):
        file = tmp_path / name / "deep" / "x"
        file.parent.mkdir(parents=True)
        file.write_text("x")
        file.chmod(mode)
        os.utime(file, (moment, moment))
        archive.pack_folder(tmp_path / name, tmp_path / f"{name}.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    with tarfile.open(tmp_path / "one.tar") as opened:
        assert opened.getnames() == ["deep/x"]
    assert archive.read(tmp_path / "one.tar", "deep/x") == b"x"
