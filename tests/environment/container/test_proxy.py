"""What the way out to model APIs lets through; the whole way is tested on a real daemon."""

from __future__ import annotations

import pytest

from environment.container.proxy import parse_rule


@pytest.mark.parametrize(
    ("rule", "host", "port", "allowed"),
    [
        ("api.example.org", "api.example.org", 443, True),
        ("api.example.org", "api.example.org", 22, False),
        ("api.example.org", "evil-api.example.org", 443, False),
        ("api.example.org", "api.example.org.evil.net", 443, False),
        ("*.example.org", "api.example.org", 80, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "evilexample.org", 443, False),
        ("10.0.0.1:8000", "10.0.0.1", 8000, True),
        ("10.0.0.1:8000", "10.0.0.1", 443, False),
    ],
)
def test_only_what_a_rule_names_gets_through(rule: str, host: str, port: int, allowed: bool) -> None:
    assert parse_rule(rule).allows(host, port) is allowed


@pytest.mark.parametrize("text", ["", "http://example.org", "example.org:https", ":443"])
def test_what_names_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST"):
        parse_rule(text)
