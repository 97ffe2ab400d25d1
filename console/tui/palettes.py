"""The themes there are, and what people type for them; what a theme is stands in `theme`."""

from __future__ import annotations

from dataclasses import fields

from console.tui.theme import Colours, Palette

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
