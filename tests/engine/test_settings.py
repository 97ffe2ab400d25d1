"""config.toml is read with its types, and one value in it changes without touching anything else."""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.engine.settings import (
    ConsoleSettings,
    EngineSettings,
    NotificationSettings,
    PlaceSettings,
    Prices,
    Value,
    read_table,
    require_valid,
    slurm_profiles,
    unknown_settings,
    with_value,
    write_value,
)
from mlebench_console.foundation.problems import UsageProblem

FILE = """# mine
[places]
data_dir = "/data"  # big disk

[console]  # how it looks
# bright room
theme = "light"   # by day
ascii = false

[keys]
"sweep.relaunch" = "R"
"""


@pytest.mark.parametrize(
    ("table", "name", "value", "line"),
    [
        ("console", "theme", "dark", 'theme = "dark"   # by day'),
        ("console", "ascii", True, "ascii = true"),
        ("console", "refresh", 2.0, "refresh = 2.0"),
        ("keys", "sweep.relaunch", "f5", '"sweep.relaunch" = "f5"'),
        ("keys", "sweep.stop", "#", '"sweep.stop" = "#"'),
        ("notifications", "on", ["failed", "disk"], 'on = ["failed", "disk"]'),
    ],
)
def test_one_line_changes_and_remarks_stay(
    tmp_path: Path, table: str, name: str, value: Value, line: str
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(FILE)
    write_value(config, table, name, value)
    after = config.read_text()
    assert tomllib.loads(after)[table][name] == value and line in after.splitlines()
    kept = set(FILE.splitlines()) - {line}
    assert len(kept - set(after.splitlines())) <= 1
    for remark in ("# mine", "# big disk", "# how it looks", "# bright room", "# by day"):
        assert remark in after


def test_a_value_is_taken_out(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(FILE)
    write_value(config, "keys", "sweep.relaunch", None)
    assert tomllib.loads(config.read_text())["keys"] == {}
    write_value(config, "keys", "never.there", None)
    assert config.read_text() == FILE.replace('"sweep.relaunch" = "R"\n', "")


def test_a_file_that_is_not_there_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    config = tmp_path / "new" / "config.toml"
    write_value(config, "console", "theme", "dark")
    assert tomllib.loads(config.read_text()) == {"console": {"theme": "dark"}}
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


def test_a_link_stays_a_link_and_the_mode_stays(tmp_path: Path) -> None:
    real, config = tmp_path / "dotfiles.toml", tmp_path / "config.toml"
    real.write_text(FILE)
    real.chmod(0o640)
    config.symlink_to(real)
    write_value(config, "console", "theme", "dark")
    assert config.is_symlink() and stat.S_IMODE(real.stat().st_mode) == 0o640
    assert tomllib.loads(real.read_text())["console"]["theme"] == "dark"


@pytest.mark.parametrize(
    "text",
    ["console.theme = 'x'\n", "console = { theme = 'x' }\n", "[console]\ntheme = [\n 'disk',\n]\n"],
)
def test_a_value_is_changed_however_it_is_laid_out(tmp_path: Path, text: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text)
    write_value(config, "console", "theme", "dark")
    assert tomllib.loads(config.read_text()) == {"console": {"theme": "dark"}}


@pytest.mark.parametrize("text", ["[", "console = 3\n"])
def test_a_file_that_can_not_be_changed_is_left_alone_and_named(tmp_path: Path, text: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text)
    with pytest.raises(UsageProblem, match=str(config)):
        write_value(config, "console", "theme", "dark")
    assert config.read_text() == text


@given(
    st.dictionaries(st.sampled_from(["a", "b.c", "d e"]), st.booleans() | st.text(max_size=5), max_size=3),
    st.sampled_from(["a", "b.c", "d e", "new"]),
    st.booleans() | st.text(max_size=8) | st.integers(-5, 5),
)
def test_nothing_else_changes_whatever_the_file_holds(
    before: dict[str, Value], name: str, value: Value
) -> None:
    text = "# remark\n" + tomlkit.dumps({"other": {"a": 1}, "table": before, "last": {"a": 2}})
    after = tomllib.loads(with_value(text, "table", name, value))
    assert after == {"other": {"a": 1}, "table": before | {name: value}, "last": {"a": 2}}


@pytest.mark.parametrize(
    ("text", "telling"),
    [
        ("engine = 3", "'engine' must be a table, [engine]"),
        ("[engine]\ncpus = 0", "[engine] cpus is not a number above 0"),
        ("[engine]\ndataset_workers = 1.5", "[engine] dataset_workers is not a whole number, 1 or more"),
        ("[console]\nascii = 1", "[console] ascii is not true or false"),
        ("[console]\nrefresh = 0", "[console] refresh is not a number of seconds from 0.1 to 3600"),
        ("[places]\ndata_dir = 3", "[places] data_dir is not a text"),
        ("[notifications]\non = ['always']", "[notifications] on is not a list of finished, failed, medal"),
        ("[prices]\nrun_hour = -1", "[prices] run_hour is not a price, 0 or more"),
        ("[", "can't be read"),
    ],
)
def test_what_is_wrong_is_named_with_its_file_table_and_key(tmp_path: Path, text: str, telling: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text)
    tables = (EngineSettings, ConsoleSettings, PlaceSettings, NotificationSettings, Prices)
    with pytest.raises(UsageProblem) as told:
        for table in tables:
            read_table(config, table)
    assert telling in str(told.value) and str(config) in str(told.value)


def test_what_nothing_reads_is_told_with_the_nearest_name(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        'colour = 1\n[consol]\ntheme = "light"\n[engine]\ncpu = 4\ncpus = 4\n[slurm.big]\npartion = "x"\n'
        '[keys]\n"sweep.stop" = "x"\n[filters]\nnight = "class:infra"\n[providers.own]\nurl = "u"\n'
    )
    assert [text.removeprefix("config.toml: ") for text in unknown_settings(config)] == [
        "there is no setting 'colour' outside of tables, it is ignored",
        "there is no table [consol], it is ignored; did you mean 'console'?",
        "[engine] has no 'cpu', which is ignored; did you mean 'cpus'?",
        "[slurm] has no 'partion', which is ignored; did you mean 'partition'?",
    ]
    assert read_table(config, EngineSettings).cpus == 4
    assert slurm_profiles(config)["big"] == slurm_profiles(config)["default"]
    config.write_text("[")
    assert unknown_settings(config) == unknown_settings(tmp_path / "none.toml") == ()


def test_a_file_that_a_change_would_make_unusable_stays_as_it_is(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[engine]\ncpus = 4\n")
    with pytest.raises(UsageProblem, match=re.escape(f"{config}: [engine] cpus is not a number above 0")):
        write_value(config, "engine", "cpus", 0, check=require_valid)
    assert config.read_text() == "[engine]\ncpus = 4\n" and list(tmp_path.iterdir()) == [config]
