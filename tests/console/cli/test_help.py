from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest

from mlebench_console.console.cli.program import COMMANDS, root_command
from mlebench_console.console.tui.theme import THEME_NAMES
from tests.console.cli.conftest import Cli
from tools.reference import subcommands


def all_commands() -> Iterator[tuple[str, ...]]:
    """Every command's path, groups included."""
    for name, command in subcommands(root_command()).items():
        yield (name,)
        for inner in subcommands(command):
            yield (name, inner)


@pytest.mark.parametrize("path", tuple(all_commands()), ids=" ".join)
def test_every_command_says_in_one_sentence_what_it_does(cli: Cli, path: tuple[str, ...]) -> None:
    helped = cli(*path, "--help")
    assert helped.code == 0
    assert helped.err == ""
    assert f"Usage: mlebench-console {' '.join(path)}" in helped.out
    sentence = helped.out.split("\n\n")[1].strip()
    assert len(sentence) > 20
    assert cli(*path, "-h").out == helped.out


# What these print is not data: a screen, a program's own text, or a file in another program's format.
WITHOUT_DATA = {"completion", "demo", "engine run", "engine unit", "runs shell", "serve"}


def test_every_command_that_prints_data_prints_it_as_json_too() -> None:
    silent = set()
    for path in all_commands():
        command: Any = root_command()
        for name in path:
            command = subcommands(command)[name]
        options = {option for parameter in command.params for option in parameter.opts}
        if not subcommands(command) and "--json" not in options:
            silent.add(" ".join(path))
    assert silent == WITHOUT_DATA


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_that_spares_imports_says_what_the_command_says(cli: Cli, name: str) -> None:
    _module, help_ = COMMANDS[name]
    assert help_.endswith(".")
    told = " ".join(cli(name, "--help").out.split())
    # The command may say more: about exit codes, or what a second call does.
    assert help_.rstrip(".") in told


def test_the_root_lists_every_command_and_the_exit_codes(cli: Cli) -> None:
    helped = cli("--help")
    for name, (_module, help_) in COMMANDS.items():
        assert f"  {name}" in helped.out
        assert help_ in " ".join(helped.out.split())
    assert "Exit codes: 0 done" in " ".join(helped.out.split())


def test_the_version_is_that_of_the_package(cli: Cli) -> None:
    assert cli("--version").out == f"mlebench-console {version('mlebench-console')}\n"


def test_a_group_without_a_command_shows_its_help(cli: Cli) -> None:
    shown = cli("engine")
    assert shown.code == 2
    assert shown.err == cli("engine", "--help").out, "as it is, not as the text of an error"


def test_help_names_numbers_and_their_ranges_in_words(cli: Cli) -> None:
    told = " ".join(cli("sweep", "launch", "--help").out.split())
    assert "--seeds N How many seeds each competition has: one run for each. [default: 3] [1 or more]" in told
    assert "range" not in told and "x>=" not in told


def test_the_help_of_theme_lists_every_theme(cli: Cli) -> None:
    *names, last = THEME_NAMES
    assert f"theme: {', '.join(names)} or {last}." in " ".join(cli("--help").out.split())
