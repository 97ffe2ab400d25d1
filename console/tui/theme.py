"""Themes: what each role of text looks like, and the signs; a colour always means a state and never decorates."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

from rich.style import Style
from textual.theme import Theme

Role = Literal[
    "text",
    "strong",
    "dim",
    "faint",
    "accent",
    "gold",
    "silver",
    "bronze",
    "good",
    "running",
    "warn",
    "bad",
    "mark",
    "hit",
]


# Which of a theme's colours come closest to the names that programs in a terminal use.
_SHADES = {
    "black": "faint",
    "red": "bad",
    "green": "good",
    "yellow": "warn",
    "blue": "accent",
    "magenta": "bronze",
    "cyan": "running",
    "white": "text",
}


@dataclass(frozen=True)
class Colours:
    """The colours of a theme; `ansi_default` leaves the terminal its own."""

    background: str
    raised: str
    cursor: str
    text: str
    dim: str
    faint: str
    accent: str
    gold: str
    silver: str
    bronze: str
    good: str
    running: str
    warn: str
    bad: str


@dataclass(frozen=True)
class Palette:
    """A theme: which colours, and whether attributes must stand in for them."""

    name: str
    dark: bool
    colours: Colours
    monochrome: bool = False
    ansi: bool = False

    @property
    def is_terminals_own(self) -> bool:
        """Whether the terminal decides what the colours look like."""
        return self.monochrome or self.ansi

    def colour_of(self, name: str | None) -> str | None:
        """Return the theme's shade of a colour that a terminal program asked for by one of the 16 names."""
        if name is None or self.monochrome:
            return None
        if self.ansi:
            return name
        shade = _SHADES.get(name.removeprefix("bright_"))
        return getattr(self.colours, shade) if shade else name

    def style(self, role: Role) -> Style:
        """Return how text in a role is drawn."""
        return self._styles[role]

    @cached_property
    def cursor(self) -> Style:
        """What is laid over the line or cell under the cursor."""
        return Style(reverse=True) if self.is_terminals_own else Style(bgcolor=self.colours.cursor)

    @cached_property
    def base(self) -> Style:
        """What everything starts from."""
        if self.monochrome:
            return Style()
        return Style(color=self.colours.text, bgcolor=self.colours.background)

    @cached_property
    def raised(self) -> Style:
        """What everything in a box over the screen starts from."""
        return Style() if self.monochrome else Style(color=self.colours.text, bgcolor=self.colours.raised)

    @cached_property
    def _styles(self) -> dict[Role, Style]:
        if self.monochrome:
            return {
                "text": Style(),
                "strong": Style(bold=True),
                "dim": Style(dim=True),
                "faint": Style(dim=True),
                "accent": Style(bold=True),
                "gold": Style(bold=True),
                "silver": Style(bold=True),
                "bronze": Style(bold=True),
                "good": Style(),
                "running": Style(),
                "warn": Style(bold=True),
                "bad": Style(bold=True),
                "mark": Style(dim=True, reverse=True),
                "hit": Style(reverse=True),
            }
        made: dict[Role, Style] = {
            "strong": Style(color=self.colours.text, bold=True),
            "mark": Style(color=self.colours.warn, dim=True),
            "hit": Style(color=self.colours.background, bgcolor=self.colours.warn),
        }
        coloured: tuple[Role, ...] = (
            "text", "dim", "faint", "accent", "gold", "silver", "bronze", "good", "running", "warn", "bad",
        )  # fmt: skip
        return made | {role: Style(color=getattr(self.colours, role)) for role in coloured}

    def textual_theme(self) -> Theme:
        """Return the same as a Textual theme, for the stylesheet."""
        colours = self._for_textual()
        names = {f"c-{field.name}": getattr(colours, field.name) for field in fields(colours)}
        return Theme(
            name=self.name,
            primary=colours.accent,
            secondary=colours.dim,
            accent=colours.accent,
            warning=colours.warn,
            error=colours.bad,
            success=colours.good,
            foreground=colours.text,
            background=colours.background,
            surface=colours.raised,
            panel=colours.raised,
            dark=self.dark,
            ansi=self.is_terminals_own,
            variables=names
            | {
                "scrollbar": colours.faint,
                "scrollbar-hover": colours.dim,
                "scrollbar-active": colours.accent,
                "scrollbar-background": colours.background,
                "scrollbar-background-hover": colours.background,
                "scrollbar-background-active": colours.background,
                "scrollbar-corner-color": colours.background,
                "ansi-background": "ansi_black",
                "ansi-foreground": "ansi_white",
                "block-cursor-text-style": "reverse" if self.is_terminals_own else "none",
            },
        )

    def _for_textual(self) -> Colours:
        """The terminal's colours have other names there."""
        if not self.ansi:
            return self.colours
        return Colours(*(f"ansi_{getattr(self.colours, field.name)}" for field in fields(Colours)))


DARK = Palette(
    "night",
    dark=True,
    colours=Colours(
        background="#0f1115",
        raised="#171a21",
        cursor="#262c38",
        text="#d6d9df",
        dim="#8b93a1",
        faint="#454c59",
        accent="#7fb2ff",
        gold="#f2cc4d",
        silver="#cfd8e3",
        bronze="#cf8f5c",
        good="#83c98a",
        running="#63b3ed",
        warn="#f0a04b",
        bad="#f2766f",
    ),
)
LIGHT = Palette(
    "day",
    dark=False,
    colours=Colours(
        background="#fbfbf8",
        raised="#f0f0ea",
        cursor="#dfe6f2",
        text="#23272e",
        dim="#636b78",
        faint="#b9bec7",
        accent="#1d5fc4",
        gold="#806000",
        silver="#5c6b7c",
        bronze="#9c5420",
        good="#267334",
        running="#0b6cb0",
        warn="#a65500",
        bad="#c22f2a",
    ),
)
MONOCHROME = Palette(
    "plain", dark=True, colours=Colours(*["ansi_default"] * len(fields(Colours))), monochrome=True
)
CONTRAST = Palette(
    "contrast",
    dark=True,
    colours=Colours(
        background="#000000",
        raised="#101010",
        cursor="#202020",
        text="#ffffff",
        dim="#d0d0d0",
        faint="#909090",
        accent="#8ec7ff",
        gold="#ffe14d",
        silver="#ffffff",
        bronze="#ffb070",
        good="#7dff8a",
        running="#6fd3ff",
        warn="#ffb03b",
        bad="#ff8a80",
    ),
)
# The sixteen colours that every terminal has, as its owner chose them.
ANSI = Palette(
    "terminal",
    dark=True,
    colours=Colours(
        background="default",
        raised="default",
        cursor="default",
        text="default",
        dim="white",
        faint="bright_black",
        accent="bright_blue",
        gold="bright_yellow",
        silver="bright_white",
        bronze="yellow",
        good="green",
        running="cyan",
        warn="magenta",
        bad="red",
    ),
    ansi=True,
)
PALETTES = {palette.name: palette for palette in (DARK, LIGHT, CONTRAST, ANSI, MONOCHROME)}
# What people type for them.
_TYPED = {"dark": DARK, "light": LIGHT, "contrast": CONTRAST, "ansi": ANSI, "mono": MONOCHROME}
THEME_NAMES = tuple(_TYPED)
PALETTE_NAMES = _TYPED | PALETTES


@dataclass(frozen=True)
class Signs:
    """One set of signs; letters are the same in both."""

    running: str = "▶"
    queued: str = "…"
    paused: str = "‖"
    done: str = "✓"
    stopped: str = "■"
    failed: str = "!"
    above_median: str = "^"
    below_median: str = "v"
    invalid: str = "x"
    no_submission: str = "0"
    reroll: str = "*"
    marked: str = "●"
    cursor: str = "▎"
    rule: str = "─"
    level: str = "┄"
    dot: str = "·"
    ellipsis: str = "…"
    plus_minus: str = "±"
    pointer: str = "▲"
    left: str = "◄"
    right: str = "►"
    up: str = "↑"
    down: str = "↓"
    enter: str = "⏎"
    bar_full: str = "█"
    bar_parts: str = " ▏▎▍▌▋▊▉"
    bar_empty: str = "·"
    times: str = "×"


UNICODE = Signs()
ASCII = Signs(
    running=">",
    queued=".",
    paused="p",
    done="+",
    stopped="#",
    marked="@",
    cursor="|",
    rule="-",
    level="-",
    dot="-",
    ellipsis="~",
    plus_minus="+/-",
    pointer="^",
    left="<",
    right=">",
    up="^",
    down="v",
    enter="Enter",
    bar_full="#",
    bar_parts=" ",
    bar_empty=".",
    times="x",
)
