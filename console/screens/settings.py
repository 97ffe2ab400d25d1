"""The settings screen: appearance, refreshing and notifications; changes are written to config.toml at once.

Addresses for notifications, which may contain secrets, are never shown.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mlebench_console.console.fields import REST, NounField
from mlebench_console.console.lists import words_accept
from mlebench_console.console.roles import Pieces, Signs
from mlebench_console.console.tui.config import REFRESH_CHOICES, Settings
from mlebench_console.console.tui.list_screen import DescribedScreen
from mlebench_console.console.tui.theme import PALETTE_NAMES, THEME_NAMES
from mlebench_console.console.tui.widgets.blocks import Block, listing, longest, section
from mlebench_console.engine.settings import NotificationKind, NotificationSettings, Value
from mlebench_console.foundation.problems import Problem

_WHERE_ADDRESSES = "write addresses into config.toml, as urls under [notifications]: they hold passwords"
_KEYS = "keys"
_WHERE_KEYS = "write keys into config.toml, under [keys]; docs/keys.md has the names of what they do"
_WHEN = "notify me when"
# What is said while kinds of news are on, and no way of sending them is; the longest form that fits.
_NOTHING_SENT = (
    "nothing is sent: no way of notifying is set; switch on bell or desktop below, or write urls into config.toml",
    "nothing is sent: no way of notifying is set; switch one on below",
)
_KINDS = {
    NotificationKind.FINISHED: "a run ended without a medal",
    NotificationKind.FAILED: "a run or a dataset failed",
    NotificationKind.MEDAL: "a run ended with a medal",
    NotificationKind.IDLE: "a run is idle",
    NotificationKind.DISK: "a disk is almost full",
    NotificationKind.PREPARED: "a dataset is prepared",
    NotificationKind.REFUSED: "Kaggle refuses a dataset",
    NotificationKind.PROVIDER: "a provider of models fails",
    NotificationKind.BUDGET: "a shared budget is nearly used up",
}


@dataclass(frozen=True)
class Setting:
    """The key of a line: a setting's place in config.toml.

    Attributes:
        part: distinguishes several lines about one place.
        following: the value that Enter writes; None if there is no next value.
    """

    table: str
    name: str
    label: str = field(compare=False)
    shown: str = field(compare=False)
    about: str = field(compare=False)
    following: Value = field(default=None, compare=False)
    part: str = ""


class SettingsScreen(DescribedScreen):
    """The list of settings; below it the description of the one under the cursor and its name in config.toml."""

    CONTEXTS = ("settings", "list")
    MODE = "settings"

    def on_mount(self) -> None:
        """Draw the settings, which need no query."""
        self.draw()

    def redraw(self) -> None:
        """Draw the settings."""
        header: list[Pieces] = [((" written to ", "dim"), (str(self.app.places.config_file), "text"))]
        header += [((f" {text}", "warn"),) for text in self.app.settings.unknown]
        if self.words:
            header.append(((" / ", "accent"), (self.words, "text")))
        self.header.show(*header)
        self.line_list.show(settings_blocks(self.app.settings, self.words, self.app.signs))
        self._draw_about()

    def on_line_list_cursor_moved(self) -> None:
        """Write out the setting under the cursor."""
        self._draw_about()

    def _draw_about(self) -> None:
        setting = self._setting()
        if setting is None:
            self.about.show()
            return
        name = f"[{setting.table}] {setting.name}"
        dot = f" {self.app.signs.dot} "
        self.about.show(((f" {setting.about}", "text"), (dot, "faint"), (name, "dim")))

    def action_open(self) -> None:
        """Set the next value, or say where it is written by hand."""
        setting = self._setting()
        if setting is None or self.app.refuses():
            return
        if setting.following is not None:
            self._write(setting, setting.following)
        else:
            self.app.say(_WHERE_KEYS if setting.table == _KEYS else _WHERE_ADDRESSES)

    def action_reset(self) -> None:
        """Remove the setting from config.toml, so that its default applies."""
        setting = self._setting()
        if setting is None or self.app.refuses():
            return
        if setting.table == _KEYS:
            self.app.say(_WHERE_KEYS)
        else:
            self._write(setting, None)

    def _setting(self) -> Setting | None:
        key = self.line_list.key
        return key if isinstance(key, Setting) else None

    def _write(self, setting: Setting, value: Value) -> None:
        try:
            self.app.change_setting(setting.table, setting.name, value)
        except Problem as problem:
            self.app.say(str(problem), bad=True)


def settings_blocks(settings: Settings, words: str, signs: Signs) -> Iterator[Block]:
    """Yield the settings that the filter lets through, in groups."""
    notified = settings.notifications
    is_sent = bool(notified.urls) or notified.uses_terminal
    groups = {
        "appearance": _appearance(settings, signs),
        _WHEN: _kinds(settings, signs),
        "notify me by": _services(settings, signs),
        "keys": _keys(settings),
    }
    is_first = True
    for title, members in groups.items():
        found = [
            each for each in members if words_accept(words, each.label, each.shown, each.about, each.name)
        ]
        if not found:
            continue
        if not is_first:
            yield ()
        is_first = False
        yield section(title)
        if title == _WHEN and not is_sent and notified.on:
            yield longest(*(((f"  {text}", "warn"),) for text in _NOTHING_SENT))
        yield listing(_COLUMNS, found, key=lambda each: each, titles=False)
    if is_first:
        yield (("  no setting has these words", "dim"),)


_COLUMNS = (
    NounField[Setting]("setting", lambda setting, _: setting.label, 22),
    NounField[Setting]("value", lambda setting, _: setting.shown, 12, gap=1, role="strong"),
    NounField[Setting]("about", lambda setting, _: setting.about, 20, grows=REST, role="dim"),
)


def _appearance(settings: Settings, signs: Signs) -> list[Setting]:
    table, plain, refresh = "console", settings.ascii_only, settings.refresh_seconds
    theme = next(
        (name for name in THEME_NAMES if PALETTE_NAMES[name] is settings.palette), settings.palette.name
    )
    forced = "NO_COLOR is set: themes have no effect" if os.environ.get("NO_COLOR") else " ".join(THEME_NAMES)
    ascii_only = "ASCII signs only", _yes(plain, signs), "for terminals without Unicode"
    refresh_every = "refresh every", f"{refresh:g} s", "how soon changes are seen"
    return [
        Setting(table, "theme", "theme", theme, forced, _after(theme, THEME_NAMES)),
        Setting(table, "ascii", *ascii_only, not plain),
        Setting(table, "refresh", *refresh_every, _after(refresh, REFRESH_CHOICES)),
    ]


def _kinds(settings: Settings, signs: Signs) -> list[Setting]:
    table, on = NotificationSettings.TABLE, settings.notifications.on

    def other(kind: NotificationKind) -> list[str]:
        """Return the kinds that are on after switching this one."""
        return [each.value for each in NotificationKind if (each in on) is not (each is kind)]

    return [
        Setting(table, "on", kind.value, _yes(kind in on, signs), about, other(kind), part=kind.value)
        for kind, about in _KINDS.items()
    ]


def _services(settings: Settings, signs: Signs) -> list[Setting]:
    table, notified = NotificationSettings.TABLE, settings.notifications
    bell = "bell", _yes(notified.bell, signs), "of this terminal, while the console is open"
    desktop = "desktop", _yes(notified.desktop, signs), "by this terminal, while the console is open"
    count = f"{len(notified.urls)} set" if notified.urls else "none"
    return [
        Setting(table, "bell", *bell, not notified.bell),
        Setting(table, "desktop", *desktop, not notified.desktop),
        Setting(table, "urls", "services", count, "webhooks, Slack, mail; by the engine"),
    ]


def _keys(settings: Settings) -> list[Setting]:
    count = len(settings.keys.keymap())
    about = 'such as "sweep.relaunch" = "f5"; docs/keys.md has the names'
    return [Setting(_KEYS, "", "changed keys", str(count) if count else "none", about)]


def _after(value: Value, known: Sequence[Value]) -> Value:
    """Return the choice after a value; the first one if the value is not a choice."""
    place = known.index(value) if value in known else -1
    return known[(place + 1) % len(known)]


def _yes(value: bool, signs: Signs) -> str:
    return f"{signs.done} yes" if value else "no"
