"""What documents name exists: commands, flags, make targets, links; what the program writes is up to date."""

from __future__ import annotations

import ast
import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.console.cli.program import PROGRAM, root_command
from tools.reference import WRITERS, subcommands

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "tests/conformance/README.md",
]
AGAIN = "run 'make docs'"


def code_of(document: Path) -> Iterator[str]:
    """Every line of a fenced block and every inline piece of code; transcripts of help are left out."""
    text = document.read_text(encoding="utf-8")
    for language, block in re.findall(r"```(\w*)\n(.*?)```", text, flags=re.DOTALL):
        if language != "text":
            yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def commands_named() -> list[tuple[str, str]]:
    found = []
    for document in DOCUMENTS:
        for line in code_of(document):
            for piece in re.findall(rf"(?:^|\$\(|\s){PROGRAM}(?:\s[^)\n]*)?", line):
                found.append((document.name, piece.strip().removeprefix("$(")))
    return found


def unknown_in(line: str) -> list[str]:
    """Names of commands and flags in a command line that do not exist."""
    command: Any = root_command()
    flags = {option for parameter in command.params for option in parameter.opts}
    missing = []
    for word in shlex.split(line, comments=True)[1:]:
        if word.startswith("-"):
            own = {
                option
                for parameter in command.params
                for option in (*parameter.opts, *parameter.secondary_opts)
            }
            if word.partition("=")[0] not in own | flags | {"--help", "-h"}:
                missing.append(word)
        elif inner := subcommands(command):
            if word not in inner:
                return [*missing, word]
            command = inner[word]
    return missing


def test_the_readme_names_commands_at_all() -> None:
    assert len([line for name, line in commands_named() if name == "README.md"]) > 10


@pytest.mark.parametrize(("document", "line"), commands_named())
def test_every_command_and_flag_that_a_document_names_exists(document: str, line: str) -> None:
    assert unknown_in(line) == []


def flags_in_messages() -> set[str]:
    """The flags that messages and next steps of the engine name; other programs' are not named in these packages."""
    found: set[str] = set()
    for package in ("sweeps", "options", "needs", "datasets"):
        for module in (ROOT / "engine" / package).rglob("*.py"):
            texts = (
                node.value
                for node in ast.walk(ast.parse(module.read_text()))
                if isinstance(node, ast.Constant)
            )
            for text in texts:
                found.update(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text) if isinstance(text, str) else ())
    return found


def flags_of(command: Any) -> set[str]:
    own = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    return own.union(*map(flags_of, subcommands(command).values()))


def test_every_flag_that_a_message_of_the_engine_names_exists() -> None:
    assert len(flags_in_messages()) > 10
    assert flags_in_messages() - flags_of(root_command()) == set()


@pytest.mark.parametrize(
    "line", ["mlebench-console swep list", "mlebench-console runs list --stat", "mlebench-console engine go"]
)
def test_what_does_not_exist_would_be_noticed(line: str) -> None:
    assert len(unknown_in(line)) == 1


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    dead = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert dead == []


def test_every_make_target_that_a_document_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = {
        target
        for document in DOCUMENTS
        for line in code_of(document)
        for target in re.findall(r"^make ([a-z]+)", line)
    }
    assert {"run", "test", "check", "bench"} <= named
    assert named <= targets


@pytest.mark.parametrize("name", WRITERS)
def test_what_the_program_writes_is_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == WRITERS[name](), AGAIN


def test_nothing_names_an_index_of_packages() -> None:
    named = [
        line
        for line in (ROOT / "requirements.lock").read_text().splitlines()
        if not line.startswith(("#", "    --hash=sha256:"))
        and not re.match(r"[a-z0-9._-]+==\S+( ;.*)? \\$", line)
    ]
    assert named == []


def test_the_architecture_names_packages_and_functions_that_exist_and_leaves_out_no_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(
        re.findall(r"`((?:console|engine|environment|competitions|state|foundation)(?:\.\w+)*)`", text)
    )
    assert len(named) > 50
    missing = []
    for name in sorted(named):
        try:
            pkgutil.resolve_name(f"mlebench_console.{name}")
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []
    packages = {
        ".".join(file.parent.relative_to(ROOT).parts)
        for top in ("console", "engine", "environment", "competitions", "state", "foundation")
        for file in (ROOT / top).rglob("__init__.py")
        if "agents" not in file.parts
    }
    assert {name for name in packages if not name.startswith("competitions.kit.")} <= named
