import re
from collections import Counter

import pytest

from release.changelog import entries, section
from release.contents import ROOT, ReleaseError

TEXT = """# Changelog

## [Unreleased]

### Added
- Next.

## [1.1.0] - 2026-01-02

### Added

#### Here
- One `thing`
  in two lines. See [docs/x.md](docs/x.md).
- Another.

### Fixed
- A bug.

## [1.0.0] - 2026-01-01
- First.
"""


def test_a_version_gets_its_own_section():
    assert section(TEXT, "1.1.0").startswith("### Added")
    assert "Next" not in section(TEXT, "1.1.0")
    assert section(TEXT, "1.0.0") == "- First."


def test_before_its_release_a_version_gets_what_is_unreleased():
    assert section(TEXT, "1.2.0") == "### Added\n- Next."


def test_no_entry_of_ours_stands_twice():
    found = re.split(r"\n(?=- |\n|#)", (ROOT / "CHANGELOG.md").read_text())
    assert [each for each, count in Counter(filter(None, map(str.strip, found))).items() if count > 1] == []


def test_nothing_to_say_is_an_error_that_says_so():
    with pytest.raises(ReleaseError, match=r"no section \[2\.0\.0\]"):
        section("# Changelog\n\n## [Unreleased]\n", "2.0.0")


def test_entries_are_plain_sentences_with_their_kind():
    assert list(entries(section(TEXT, "1.1.0"))) == [
        ("added", "One thing in two lines. See docs/x.md."),
        ("added", "Another."),
        ("fixed", "A bug."),
    ]


def test_a_kind_that_artifact_hub_does_not_know_is_refused():
    with pytest.raises(ReleaseError, match="### Improved is none of added"):
        list(entries("### Improved\n- x\n"))


def test_our_own_changelog_can_be_read_whole():
    text = (ROOT / "CHANGELOG.md").read_text()
    said = section(text, "Unreleased")
    assert len(list(entries(said))) == said.count("\n- ")
