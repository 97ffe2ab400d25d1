"""One table makes bindings, footer, help and docs; what it names exists, and it can be rebound."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.dom import DOMNode

from mlebench_console.console.app.app import ConsoleApp
from mlebench_console.console.screens.code import CodeScreen, DiffScreen
from mlebench_console.console.screens.comparison import CompareScreen
from mlebench_console.console.screens.dataset import DataScreen, DatasetScreen
from mlebench_console.console.screens.dialogs import ClassifyScreen, ConfirmScreen, HelpScreen
from mlebench_console.console.screens.events import EventsScreen
from mlebench_console.console.screens.experiment import ExperimentScreen, PlotsScreen
from mlebench_console.console.screens.export import ExportScreen
from mlebench_console.console.screens.grading import GradeScreen
from mlebench_console.console.screens.host import HostScreen
from mlebench_console.console.screens.integrity import IntegrityScreen
from mlebench_console.console.screens.launch import LaunchScreen
from mlebench_console.console.screens.logs import FileScreen, RunLogsScreen
from mlebench_console.console.screens.overview import OverviewScreen
from mlebench_console.console.screens.run.screen import RunScreen
from mlebench_console.console.screens.scoreboard import BoardScreen
from mlebench_console.console.screens.settings import SettingsScreen
from mlebench_console.console.screens.sweep import SweepScreen
from mlebench_console.console.screens.timeline import TimelineScreen
from mlebench_console.console.screens.welcome import WelcomeScreen
from mlebench_console.console.tui.config import read_settings
from mlebench_console.console.tui.keys import TABLE, Key, KeyTable, key_name, rebound_keys
from mlebench_console.console.tui.widgets.inputs import Field
from mlebench_console.console.tui.widgets.line_list import LineList
from mlebench_console.console.tui.widgets.log_view import LogView
from mlebench_console.foundation.problems import UsageProblem

HOLDERS: dict[str, type[DOMNode]] = {
    "app": ConsoleApp,
    "list": LineList,
    "matrix": LineList,
    "log": LogView,
    "overview": OverviewScreen,
    "sweep": SweepScreen,
    "run": RunScreen,
    "submissions": RunScreen,
    "data": DataScreen,
    "dataset": DatasetScreen,
    "grade": GradeScreen,
    "board": BoardScreen,
    "host": HostScreen,
    "launch": LaunchScreen,
    "events": EventsScreen,
    "timeline": TimelineScreen,
    "integrity": IntegrityScreen,
    "welcome": WelcomeScreen,
    "help": HelpScreen,
    "field": Field,
    "confirm": ConfirmScreen,
    "classify": ClassifyScreen,
    "file": FileScreen,
    "logs": RunLogsScreen,
    "code": CodeScreen,
    "diff": DiffScreen,
    "experiment": ExperimentScreen,
    "plots": PlotsScreen,
    "compare": CompareScreen,
    "export": ExportScreen,
    "settings": SettingsScreen,
}


@pytest.mark.parametrize("key", TABLE, ids=lambda key: key.id)
def test_every_key_leads_to_an_action_that_exists(key: Key) -> None:
    holder = HOLDERS[key.context]
    name = key.does.partition("(")[0]
    if name.startswith("app."):
        holder, name = ConsoleApp, name.removeprefix("app.")
    assert callable(getattr(holder, f"action_{name}", None))


def test_no_two_keys_of_one_place_clash() -> None:
    assert rebound_keys({}).keys == TABLE


def test_ids_are_unique() -> None:
    assert len({key.id for key in TABLE}) == len(TABLE)


def test_no_screen_has_more_than_eight_keys_in_its_footer() -> None:
    for context in HOLDERS:
        # Those with one position are never shown together.
        shown = {key.footer for key in KeyTable().footer(context)}
        assert len(shown) <= 8


def test_a_key_can_be_rebound_in_config(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[keys]\n"sweep.relaunch" = "R, f5"\n"app.help" = "?"\n[console]\ntheme = "light"\n')
    settings = read_settings(config, theme=None, ascii_only=False)
    assert settings.keys.keymap() == {"sweep.relaunch": "R,f5", "app.help": "question_mark"}
    assert settings.palette.name == "day"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[keys]\n"sweep.fly" = "x"', "sweep.fly"),
        ('[keys]\n"sweep.stop" = "r"', "sweep.relaunch"),
        ('[console]\ntheme = "pink"', "pink"),
        ("keys = 3", "must be a table"),
        ("= nonsense", "can't be read"),
    ],
)
def test_a_config_that_cannot_be_used_is_refused_by_name(tmp_path: Path, text: str, told: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text)
    with pytest.raises(UsageProblem, match=told):
        read_settings(config, theme=None, ascii_only=False)


def test_no_color_wins_over_a_theme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert read_settings(tmp_path / "none", theme="light", ascii_only=False).palette.monochrome


def test_keys_are_shown_as_people_know_them() -> None:
    assert [key_name(key) for key in ("question_mark", "ctrl+d", "enter", "r")] == ["?", "^d", "⏎", "r"]
    assert key_name("enter", ascii_only=True) == "enter"
