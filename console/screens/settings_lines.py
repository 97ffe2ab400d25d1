"""The settings as lines, each with what it may be; what an address holds is never shown."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from console.screens.help import TITLES
from console.tui.config import REFRESH_CHOICES, Settings
from console.tui.keys import TABLE, shown
from console.tui.painting import (
    Line,
    Piece,
    Pieces,
    fit,
    foreign,
    heading,
)
from console.tui.theme import PALETTE_NAMES, THEME_NAMES, Signs
from console.views.filters import words_accept
from engine.settings import NotificationKind, NotificationSettings, Value

WHERE_ADDRESSES = "write addresses into config.toml, as urls under [notifications]: they hold passwords"
_NAME = 22
_KINDS = {
    NotificationKind.FINISHED: "a run ended without a medal",
    NotificationKind.FAILED: "a run failed",
    NotificationKind.MEDAL: "a run ended with a medal",
    NotificationKind.IDLE: "a run shows no sign of life",
    NotificationKind.DISK: "a disk is all but full",
}


@dataclass(frozen=True)
class Setting:
    """What a line is about: its place in config.toml; value and choices are no part of what it is."""

    table: str
    name: str
    part: str = ""
    value: Value = field(default=None, compare=False)
    choices: tuple[Value, ...] = field(default=(), compare=False)


def header(config_file: Path, words: str, width: int) -> tuple[Pieces, ...]:
    """Where settings are written, and the filter."""
    path = foreign(str(config_file), max(10, width - 14)).rstrip()
    first: Pieces = ((" written to ", "dim"), (path, "text"))
    filtered: Pieces = ((" / ", "accent"), (foreign(words, 60).rstrip(), "text"))
    return (first, filtered) if words else (first,)


def following(setting: Setting) -> Value:
    """The value after the one that a setting has."""
    if setting.part:
        on = set(setting.value) if isinstance(setting.value, list) else set()
        return [
            kind.value for kind in NotificationKind if (kind.value in on) is not (kind.value == setting.part)
        ]
    known = setting.choices
    place = known.index(setting.value) if setting.value in known else -1
    return known[(place + 1) % len(known)]


def lines(settings: Settings, words: str, width: int, signs: Signs) -> list[Line]:
    """Every setting that the filter lets through, in its part."""
    made: list[Line] = []
    for title, found in (
        ("looks", _looks(settings, signs)),
        ("call me when", _kinds(settings, signs)),
        ("by way of", _ways(settings, signs)),
        ("keys", _keys(settings)),
    ):
        kept = [_line(*each, width) for each in found if words_accept(words, *each[1:], each[0].name)]
        if kept:
            made += [*([Line()] if made else []), Line(heading(title, width, signs)), *kept]
    return made or [Line((("  no setting has these words", "dim"),))]


def _line(setting: Setting, name: str, value: str, about: str, width: int) -> Line:
    size = 16 if width >= 100 else 12
    shown_value = foreign(value, size)
    room = max(0, width - _NAME - size - 6)
    changed = value.endswith("*")
    pieces: tuple[Piece, ...] = (
        (f"  {fit(name, _NAME)} ", "text"),
        (shown_value, "accent" if changed else "strong"),
        (f"  {fit(about, room)}", "dim"),
    )
    return Line(pieces, key=setting, selectable=True)


_Found = list[tuple[Setting, str, str, str]]


def _looks(settings: Settings, signs: Signs) -> _Found:
    typed = next(
        (name for name in THEME_NAMES if PALETTE_NAMES[name] is settings.palette), settings.palette.name
    )
    forced = "NO_COLOR is set: no theme counts" if os.environ.get("NO_COLOR") else " ".join(THEME_NAMES)
    theme = Setting("console", "theme", value=typed, choices=tuple(THEME_NAMES))
    plain = Setting("console", "ascii", value=settings.ascii_only, choices=(False, True))
    refresh = Setting("console", "refresh", value=settings.refresh_seconds, choices=REFRESH_CHOICES)
    return [
        (theme, "theme", typed, forced),
        (plain, "ASCII signs only", _yes(settings.ascii_only, signs), "for terminals without Unicode"),
        (refresh, "look every", f"{settings.refresh_seconds:g} s", "how soon changes are seen"),
    ]


def _kinds(settings: Settings, signs: Signs) -> _Found:
    on: Value = [kind.value for kind in NotificationKind if kind in settings.notifications.on]
    return [
        (
            Setting(NotificationSettings.TABLE, "on", part=kind.value, value=on, choices=(kind.value,)),
            kind.value,
            _yes(kind in settings.notifications.on, signs),
            about,
        )
        for kind, about in _KINDS.items()
    ]


def _ways(settings: Settings, signs: Signs) -> _Found:
    notified = settings.notifications
    bell = Setting(NotificationSettings.TABLE, "bell", value=notified.bell, choices=(False, True))
    desktop = Setting(NotificationSettings.TABLE, "desktop", value=notified.desktop, choices=(False, True))
    count = f"{len(notified.urls)} known" if notified.urls else "none"
    return [
        (bell, "bell", _yes(notified.bell, signs), "of this terminal, while this is open"),
        (desktop, "desktop", _yes(notified.desktop, signs), "by this terminal, while this is open"),
        (
            Setting(NotificationSettings.TABLE, "urls"),
            "services",
            count,
            "webhooks, Slack, mail; by the engine",
        ),
    ]


def _keys(settings: Settings) -> _Found:
    made: _Found = []
    for key, original in zip(settings.keys.keys, TABLE, strict=True):
        names = " ".join(shown(name, ascii_only=settings.ascii_only) for name in key.keys)
        changed = " *" if key.keys != original.keys else ""
        title = TITLES.get(key.context, key.context)
        made.append(
            (
                Setting("keys", key.id),
                key.id,
                f"{names}{changed}",
                key.help if key.context == "app" else f"{title}: {key.help}",
            )
        )
    return made


def _yes(value: bool, signs: Signs) -> str:
    return f"{signs.done} yes" if value else "no"
