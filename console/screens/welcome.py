"""The welcome screen, shown while there is no state: ways to begin."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from mlebench_console.console.roles import Pieces
from mlebench_console.console.tui.screen import ConsoleScreen
from mlebench_console.console.tui.widgets.painted import Painted

_COMMANDS = (
    "mlebench-console prepare -c spaceship-titanic",
    "mlebench-console sweep launch --help",
    "mlebench-console doctor",
)


class WelcomeScreen(ConsoleScreen):
    """A text with the ways to begin, each with its key or command."""

    CONTEXTS = ("welcome",)
    AUTO_FOCUS = ""

    def body(self) -> Iterable[Widget]:
        """Return the text's widget."""
        yield Painted(id="welcome")

    def on_mount(self) -> None:
        """Write it."""
        self.redraw()

    def redraw(self) -> None:
        """Draw the text for the current size."""
        keys = self.app.drawing.keys
        lines: list[Pieces] = [
            (("mlebench-console", "strong"), ("  prepares, runs, watches and grades MLE-bench", "dim")),
            (),
            (
                ("There is nothing here yet: ", "text"),
                (str(self.app.places.state_dir), "dim"),
            ),
            (),
        ]
        choices: list[tuple[str, str, str]] = [
            (keys("welcome.demo"), "open the demo", "it runs by itself, about two minutes"),
            (keys("welcome.engine"), "start the engine", "it prepares, runs and grades"),
            (keys("app.data"), "prepare datasets", "from Kaggle, or from files that you have"),
            (keys("app.launch"), "launch a sweep", "an agent, competitions and seeds"),
            (keys("welcome.grade"), "grade one submission", "needs no sweep and no engine"),
        ]
        for key, what, why in choices:
            lines.append(((f"  {key}  ", "accent"), (f"{what:<24}", "text"), (why, "dim")))
        lines += [(), (("On the command line:", "text"),)]
        lines += [((f"     {command}", "dim"),) for command in _COMMANDS]
        helped, left = (f"  {keys(name)}  " for name in ("app.help", "app.quit"))
        lines += [(), ((helped, "accent"), ("all keys", "text"), (f"    {left}", "accent"), ("quit", "text"))]
        self.query_one("#welcome", Painted).show(*lines)

    def action_demo(self) -> None:
        """Open the demo."""
        self.app.open_demo()

    def action_engine(self) -> None:
        """Start the engine on this state."""
        self.app.start_engine()
