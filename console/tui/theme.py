"""What things look like: palettes of roles, in which a colour always means a state and never decorates."""

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
        """The theme's own shade of a colour that a terminal program asked for by one of the 16 names."""
        if name is None or self.monochrome:
            return None
        if self.ansi:
            return name
        shade = _SHADES.get(name.removeprefix("bright_"))
        return getattr(self.colours, shade) if shade else name

    def style(self, role: Role) -> Style:
        """How text in a role is drawn."""
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
        """The same as a Textual theme, for the stylesheet."""
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
