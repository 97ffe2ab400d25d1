"""Spans of time as people type them: `24h`, `90m`, `1h30m`."""

from __future__ import annotations

from foundation.problems import UsageProblem

_SECONDS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


def read_duration(text: str) -> float:
    """Seconds of `24h`, `90m`, `45s` or `1h30m`.

    Raises:
        UsageProblem: it is none of these.
    """
    seconds, number = 0.0, ""
    for letter in text.strip().lower():
        if letter.isdecimal() or letter == ".":
            number += letter
        elif letter in _SECONDS and number.replace(".", "", 1).isdecimal():
            seconds += float(number) * _SECONDS[letter]
            number = ""
        else:
            seconds, number = 0.0, ""
            break
    if number or not seconds:
        raise UsageProblem(f"'{text}' is no span of time", "", "Type 24h, 90m or 1h30m.")
    return seconds
