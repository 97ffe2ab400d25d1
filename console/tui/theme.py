"""Themes: the style of each role of text; a colour always means a state and never decorates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import get_args

from rich.color import Color
from rich.style import Style
from textual.theme import Theme

from mlebench_console.console.roles import Role

# The theme's colours closest to the eight of a terminal: black, red, green, yellow, blue, magenta, cyan, white.
_SHADES = ("faint", "bad", "good", "warn", "accent", "bronze", "running", "text")


# The colours of each theme by their use; the last theme uses the terminal's own colours. The colours of outcomes are
# easy to tell apart, also for colour-blind people.
_COLOURS = {
    # what        night      day        contrast   terminal
    "background": ("#0f1115", "#fbfbf8", "#000000", "default"),
    "raised": ("#171a21", "#f0f0ea", "#101010", "default"),
    "cursor": ("#262c38", "#e1e8f3", "#202020", "default"),
    "text": ("#d6d9df", "#23272e", "#ffffff", "default"),
    "dim": ("#9299a6", "#5f6672", "#b4b4b6", "white"),
    "faint": ("#454c59", "#b9bec7", "#909090", "bright_black"),
    "accent": ("#7fb2ff", "#1d5fc4", "#8ec7ff", "bright_blue"),
    "gold": ("#f2d24d", "#4d3c00", "#fce35f", "bright_yellow"),
    "silver": ("#d2e6f2", "#26323f", "#c8effc", "bright_white"),
    "bronze": ("#e09a68", "#5a2500", "#fb9234", "yellow"),
    "good": ("#4cb84a", "#2c7048", "#77c86e", "green"),
    "running": ("#40bcfc", "#1555e3", "#7bb0ff", "cyan"),
    "warn": ("#f0a04b", "#954c00", "#ffb03b", "magenta"),
    "invalid": ("#bf86cb", "#7a2391", "#cb9fd3", "bright_magenta"),
    "bad": ("#f2666b", "#b3202e", "#ffaaa6", "red"),
}
# The roles drawn in bold in the theme without colours.
_BOLD = frozenset({"strong", "accent", "gold", "silver", "bronze", "warn", "invalid", "bad"})
_DIM = frozenset({"dim", "faint", "mark"})
_REVERSED = frozenset({"mark", "hit"})


@dataclass(frozen=True)
class Palette:
    """A theme: its colours, and whether text attributes replace them.

    Attributes:
        grounds: the backgrounds of roles that have one of their own.
    """

    name: str
    dark: bool
    colours: Mapping[str, str]
    monochrome: bool = False
    ansi: bool = False
    grounds: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_terminals_own(self) -> bool:
        """Whether the terminal defines what the colours look like."""
        return self.monochrome or self.ansi

    def colour_of(self, asked: Color | None) -> str | None:
        """Return the colour to use for one that a program's output requests; the first 16 map to the theme's."""
        if asked is None or asked.is_default or self.monochrome:
            return None
        if self.ansi or asked.number is None or asked.number > 15:
            return asked.name
        return self.colours[_SHADES[asked.number % 8]]

    def style(self, role: Role) -> Style:
        """Return the style of a role."""
        return self._styles[role]

    @cached_property
    def cursor(self) -> Style:
        """The style applied on top of the line or cell under the cursor."""
        if not self.is_terminals_own:
            return Style(bgcolor=self.colours["cursor"])
        # Reversed colours and attributes would make patches of the line: its signs are enough.
        return Style(color="default", bgcolor="default", reverse=True, bold=False, dim=False)

    @cached_property
    def base(self) -> Style:
        """The default style of a screen."""
        return self._text_on("background")

    @cached_property
    def raised(self) -> Style:
        """The default style of a box over the screen."""
        return self._text_on("raised")

    def _text_on(self, ground: str) -> Style:
        return Style() if self.monochrome else Style(color=self.colours["text"], bgcolor=self.colours[ground])

    @cached_property
    def _styles(self) -> dict[Role, Style]:
        roles: tuple[Role, ...] = get_args(Role)
        if self.monochrome:
            return {
                role: Style(
                    bold=role in _BOLD or None, dim=role in _DIM or None, reverse=role in _REVERSED or None
                )
                for role in roles
            }
        colours = self.colours
        return {
            **{
                role: Style(color=colours[role], bgcolor=self.grounds.get(role))
                for role in roles
                if role in colours
            },
            "strong": Style(color=colours["text"], bold=True),
            "mark": Style(color=colours["warn"], dim=True),
            "hit": Style(color=colours["background"], bgcolor=colours["warn"]),
        }

    def textual_theme(self) -> Theme:
        """Return this as a Textual theme, for the stylesheet."""
        # Textual's stylesheets use other names for the terminal's colours.
        named = {name: f"ansi_{colour}" if self.ansi else colour for name, colour in self.colours.items()}
        return Theme(
            name=self.name,
            primary=named["accent"],
            secondary=named["dim"],
            accent=named["accent"],
            warning=named["warn"],
            error=named["bad"],
            success=named["good"],
            foreground=named["text"],
            background=named["background"],
            surface=named["raised"],
            panel=named["raised"],
            dark=self.dark,
            ansi=self.is_terminals_own,
            variables={f"c-{name}": colour for name, colour in named.items()}
            | {
                "scrollbar": named["faint"],
                "scrollbar-hover": named["dim"],
                "scrollbar-active": named["accent"],
                "scrollbar-background": named["background"],
                "scrollbar-background-hover": named["background"],
                "scrollbar-background-active": named["background"],
                "scrollbar-corner-color": named["background"],
                "ansi-background": "ansi_black",
                "ansi-foreground": "ansi_white",
                "block-cursor-text-style": "reverse" if self.is_terminals_own else "none",
            },
        )


_NIGHT, _DAY, _CONTRAST, _TERMINAL = (
    dict(zip(_COLOURS, column, strict=True)) for column in zip(*_COLOURS.values(), strict=True)
)
DARK = Palette("night", dark=True, colours=_NIGHT)
# Letters that can be read on white are too dark to look like gold, silver or bronze; backgrounds can.
_METALS = {"gold": "#ffd84d", "silver": "#ccd5df", "bronze": "#f0b482"}
LIGHT = Palette("day", dark=False, colours=_DAY, grounds=_METALS)
CONTRAST = Palette("contrast", dark=True, colours=_CONTRAST)
ANSI = Palette("terminal", dark=True, colours=_TERMINAL, ansi=True)
MONOCHROME = Palette("plain", dark=True, colours=dict.fromkeys(_COLOURS, "ansi_default"), monochrome=True)
PALETTES = {palette.name: palette for palette in (DARK, LIGHT, CONTRAST, ANSI, MONOCHROME)}
# The names by which settings and commands select them.
_TYPED = {"dark": DARK, "light": LIGHT, "contrast": CONTRAST, "ansi": ANSI, "mono": MONOCHROME}
THEME_NAMES = tuple(_TYPED)
PALETTE_NAMES = _TYPED | PALETTES
