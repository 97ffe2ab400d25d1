"""Sources of styles are parsed once for each theme, whichever app and screen they are for."""

from __future__ import annotations

import pytest
from textual.css.parse import parse
from textual.css.tokenizer import TokenError

from mlebench_console.console.tui.stylesheet import CachedStylesheet


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that Textual has parsed."""
    sources: list[str] = []

    def noting(scope: str, css: str, *arguments: object, **options: object) -> object:
        sources.append(css)
        return parse(scope, css, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("textual.css.stylesheet.parse", noting)
    return sources


def colour(sheet: CachedStylesheet) -> str:
    (rule,) = [rule for rule in sheet.rules if "color" in rule.css]
    return rule.css


def test_a_source_is_parsed_once_for_each_theme(parsed: list[str]) -> None:
    source = "Label.kept { color: $of-this-test; }"
    red = CachedStylesheet(variables={"of-this-test": "red"})
    red.add_source(source)
    found = colour(red)
    red.add_source("Label.other { width: 1; }")
    red.reparse()
    again = CachedStylesheet(variables={"of-this-test": "red"})
    again.add_source(source)
    assert colour(again) == found
    assert parsed.count(source) == 1
    again.set_variables({"of-this-test": "blue"})
    again.reparse()
    assert colour(again) != found
    assert colour(red) == found
    assert parsed.count(source) == 2


def test_a_wrong_source_leaves_the_rules_as_they_are() -> None:
    sheet = CachedStylesheet(variables={})
    sheet.add_source("Label.kept { color: red; }")
    found = colour(sheet)
    sheet.add_source("Label.wrong { color: ")
    with pytest.raises(TokenError):
        sheet.reparse()
    assert found in [rule.css for rule in sheet._rules]
