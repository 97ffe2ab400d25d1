"""The settings screen: looks, refreshing, notifications and keys, each written into config.toml at once."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from console.screens import settings_lines
from console.screens.rebind import RebindScreen
from console.screens.settings_lines import Setting
from console.tui.keys import bindings
from console.tui.list_screen import FilteredScreen
from console.tui.widgets.inputs import Prompt
from console.tui.widgets.line_list import LineList
from console.tui.widgets.painted import Painted
from engine.settings import Value
from foundation.problems import Problem


class SettingsScreen(FilteredScreen):
    """One list; Enter changes the line."""

    CONTEXTS = ("settings", "list")
    MODE = "settings"
    REMEMBERED_AS = "settings"
    BINDINGS = bindings("settings")

    def body(self) -> Iterable[Widget]:
        """Where it is written, then the settings."""
        yield Painted(id="header")
        yield LineList(id="settings")
        yield Prompt("/", "words that must all be in a line", id="filter")

    def on_mount(self) -> None:
        """Show them: no state is asked for them."""
        self.draw()

    def redraw(self) -> None:
        """Draw the settings as they are."""
        shown = self.query_one("#settings", LineList)
        width = shown.scrollable_content_region.width or self.size.width
        header = settings_lines.header(self.app.places.config_file, self.words, self.size.width)
        self.query_one("#header", Painted).show(*header)
        shown.show(settings_lines.lines(self.app.settings, self.words, width, self.app.signs))

    def on_line_list_opened(self) -> None:
        """Change the line."""
        self.action_change()

    def action_change(self) -> None:
        """Change the line: to its next value, or ask for a key."""
        setting = self._setting()
        if setting is None or self.app.refuses():
            return
        if setting.table == "keys":
            self.app.push_screen(RebindScreen(setting.name), self._bind)
        elif setting.choices:
            self._write(setting, settings_lines.following(setting))
        else:
            self.app.say(settings_lines.WHERE_ADDRESSES)

    def action_reset(self) -> None:
        """Take the line out of config.toml, so that it is as it was made."""
        setting = self._setting()
        if setting is not None and not self.app.refuses():
            self._write(setting, None)

    def _setting(self) -> Setting | None:
        key = self.query_one("#settings", LineList).key
        return key if isinstance(key, Setting) else None

    def _bind(self, key: str | None) -> None:
        setting = self._setting()
        if key is not None and setting is not None:
            self._write(setting, key)

    def _write(self, setting: Setting, value: Value) -> None:
        try:
            self.app.change_setting(setting.table, setting.name, value)
        except Problem as problem:
            self.app.say(str(problem), bad=True)
