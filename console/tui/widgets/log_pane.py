"""A log view with its status line and everything that can be typed for it; screens put it in whole."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult, SuspendNotSupported
from textual.widget import Widget

from console.sanitize import plain
from console.tui.widgets.inputs import Prompt
from console.tui.widgets.log_view import Asking, LogView
from console.tui.widgets.painted import Painted
from environment.container.run_log import log_parts
from foundation import files
from foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

# Terminals refuse longer clipboard sequences, or cut them silently.
MOST_COPIED = 74_000

_HINTS: dict[Asking, tuple[str, str]] = {
    "search": ("/", "a regular expression; small letters match large ones too"),
    "filter": ("&", "show only lines with a regular expression; nothing shows all"),
    "time": ("@", "14:05 for a time of day, +2:30 into the run"),
    "save": (">", "the file to save what is selected in, as harmless text"),
}


class LogPane(Widget):
    """A log, where one is in it, and its prompts."""

    DEFAULT_CSS = (
        "LogPane { height: 1fr; width: 1fr; layout: vertical; } LogPane > .log-status { height: 1; }"
    )
    app: ConsoleApp

    def compose(self) -> ComposeResult:
        """The view, the status line, the prompts."""
        yield LogView()
        yield Painted(classes="log-status")
        for what, (sign, hint) in _HINTS.items():
            yield Prompt(sign, hint, id=what)

    @property
    def view(self) -> LogView:
        """The log itself."""
        return self.query_one(LogView)

    def draw_status(self) -> None:
        """Draw the status line as things are now."""
        if self.is_attached and self.query(Painted):
            status = self.query_one(".log-status", Painted)
            status.show(self.view.status(self.size.width))

    def on_log_view_told(self, message: LogView.Told) -> None:
        """Tell where the log view is."""
        message.stop()
        self.draw_status()

    def on_log_view_asked(self, message: LogView.Asked) -> None:
        """Let it be typed."""
        message.stop()
        self.query_one(f"#{message.what}", Prompt).open("")

    def on_prompt_changed(self, message: Prompt.Changed) -> None:
        """Nothing happens before Enter."""
        message.stop()

    def on_prompt_done(self, message: Prompt.Done) -> None:
        """Do what was asked for."""
        message.stop()
        self.view.focus()
        value, wrong = message.value, ""
        if message.prompt.id == "filter":
            wrong = self.view.only_lines_with(value)
        elif value and message.prompt.id == "search":
            wrong = self.view.search(value)
        elif value and message.prompt.id == "time":
            self.view.to_moment(value)
        elif value and not self.app.refuses():
            self.view.take_selection(partial(self._save, Path(value).expanduser()))
        if wrong:
            self.app.say(wrong, bad=True)

    def on_prompt_left(self, message: Prompt.Left) -> None:
        """Nothing was asked for."""
        message.stop()
        self.view.focus()

    def on_log_view_copy_wanted(self, message: LogView.CopyWanted) -> None:
        """Copy what is selected, or what is seen."""
        message.stop()
        self.view.take_selection(self._copy)

    def on_log_view_pager_wanted(self, message: LogView.PagerWanted) -> None:
        """Leave the terminal to the operator's pager for a while."""
        message.stop()
        parts = [str(part.path) for part in log_parts(message.path)]
        wanted = shlex.split(os.environ.get("PAGER") or "less")
        if not parts or not wanted or shutil.which(wanted[0]) is None:
            self.app.say(
                "there is nothing to open" if not parts else f"there is no {' '.join(wanted)}", bad=True
            )
            return
        # Without -r, less shows control characters instead of sending them to the terminal.
        own = {name: value for name, value in os.environ.items() if name != "LESS"} | {"LESSSECURE": "1"}
        try:
            with self.app.suspend():
                subprocess.run([*wanted, *parts], check=False, env=own)
        except SuspendNotSupported:
            self.app.say("this terminal can't be left to another program", bad=True)

    def _copy(self, content: bytes) -> None:
        text = _harmless(content)
        cut = text.encode()[:MOST_COPIED].decode("utf-8", "ignore")
        more = f", the first {len(cut):,} of {len(text):,} characters" if len(cut) < len(text) else ""
        self._call(self.app.copy_to_clipboard, cut)
        self._call(self.app.say, f"copied {cut.count(chr(10)) + 1:,} lines{more}")

    def _save(self, path: Path, content: bytes) -> None:
        try:
            if path.exists():
                raise EnvironmentProblem(f"{path} is there already", "", "Name another file.")
            files.write_text(path, _harmless(content) + "\n")
        except (OSError, EnvironmentProblem) as error:
            self._call(self.app.say, str(error), bad=True)
        else:
            self._call(self.app.say, f"saved {path}")

    def _call(self, does: Any, *arguments: Any, **options: Any) -> None:
        if self.app.is_running:
            self.app.call_later(partial(does, *arguments, **options))


def _harmless(content: bytes) -> str:
    lines = content.decode("utf-8", "replace").removesuffix("\n").split("\n")
    return "\n".join(plain(line.removesuffix("\r")) for line in lines)
