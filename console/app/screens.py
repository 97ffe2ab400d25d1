"""The table of the screens that keys and modes name; each is imported when it is opened for the first time."""

from __future__ import annotations

from mlebench_console.console.tui.screen import ConsoleScreen


def make_screen(name: str) -> ConsoleScreen:
    """Make the screen of this name."""
    match name:
        case "welcome":
            from mlebench_console.console.screens.welcome import WelcomeScreen

            return WelcomeScreen()
        case "overview":
            from mlebench_console.console.screens.overview import OverviewScreen

            return OverviewScreen()
        case "sweep":
            from mlebench_console.console.screens.sweep import SweepScreen

            return SweepScreen()
        case "data":
            from mlebench_console.console.screens.dataset import DataScreen

            return DataScreen()
        case "grade":
            from mlebench_console.console.screens.grading import GradeScreen

            return GradeScreen()
        case "board":
            from mlebench_console.console.screens.scoreboard import BoardScreen

            return BoardScreen()
        case "host":
            from mlebench_console.console.screens.host import HostScreen

            return HostScreen()
        case "launch":
            from mlebench_console.console.screens.launch import LaunchScreen

            return LaunchScreen()
        case "events":
            from mlebench_console.console.screens.events import EventsScreen

            return EventsScreen()
        case "settings":
            from mlebench_console.console.screens.settings import SettingsScreen

            return SettingsScreen()
    raise ValueError(f"there is no screen '{name}'")


def import_next_screens() -> None:
    """Import the screens most likely to be opened next, so that opening the first one is not slower."""
    from mlebench_console.console.screens import dialogs, run, sweep  # noqa: F401 imported for later
