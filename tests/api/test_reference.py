"""The pages of the site: everything public has its place."""

from __future__ import annotations

import re
from pathlib import Path

import kernmodel
from kernmodel.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_the_reference_has_every_public_name():
    told = re.findall(r"^::: kernmodel\.(\S+)$", (DOCS / "reference.md").read_text(), re.MULTILINE)
    public = [f"{module}.{name}" for module, names in kernmodel._PUBLIC.items() for name in names]
    assert sorted(told) == sorted(public), "write what is new into docs/reference.md"


def test_commands_in_the_tables_for_users_of_other_tools_are_there():
    rows = re.findall(r"^\|[^|]*\|([^|]*)\|", (DOCS / "coming-from.md").read_text(), re.MULTILINE)
    named = {words.split()[0] for row in rows for words in re.findall(r"`([a-z][^`]*)`", row)}
    assert len(named) > 10
    assert named <= {*COMMANDS, "auto", "both", "hierarchical", "kernmodel"}


def test_the_navigation_names_pages_that_are_there():
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert listed <= {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
