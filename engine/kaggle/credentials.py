"""Kaggle credentials, from the places and in the order of Kaggle's own client; nothing is sent anywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

NO_CREDENTIALS_STEP = "Make a token on kaggle.com (Settings, API) and put it into ~/.kaggle/access_token."


@dataclass(frozen=True)
class Credentials:
    """A token, or a name with its key, or an OAuth login that Kaggle's client turns into a token.

    Attributes:
        source: where they were found, for people; the secrets themselves are never shown.
        file: the file that holds the secret; None: the environment does.
    """

    source: str
    file: Path | None = None
    token: str | None = field(default=None, repr=False)
    username: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    oauth: bool = False


def find_credentials(
    environment: Mapping[str, str] | None = None, home: Path | None = None
) -> Credentials | None:
    """Look for credentials; None when there are none."""
    variables = os.environ if environment is None else environment
    own = (Path.home() if home is None else home) / ".kaggle"
    given = variables.get("KAGGLE_API_TOKEN", "")
    if given:
        token = _text(Path(given))
        return Credentials("KAGGLE_API_TOKEN", Path(given) if token else None, token=token or given)
    for path in (own / "access_token", own / "access_token.txt"):
        token = _text(path)
        if token:
            return Credentials(str(path), path, token=token)
    if variables.get("KAGGLE_CONFIG_DIR"):
        folder = Path(variables["KAGGLE_CONFIG_DIR"])
    elif own.exists():
        folder = own
    else:
        folder = Path(variables.get("XDG_CONFIG_HOME") or own.parent / ".config") / "kaggle"
    path = folder / "kaggle.json"
    values = _json(path)
    username = variables.get("KAGGLE_USERNAME") or values.get("username")
    key = variables.get("KAGGLE_KEY") or values.get("key")
    if username and key and variables.get("KAGGLE_KEY"):
        return Credentials("KAGGLE_USERNAME and KAGGLE_KEY", username=username, key=key)
    if username and key:
        return Credentials(str(path), path, username=username, key=key)
    path = own / "credentials.json"
    return Credentials(str(path), path, oauth=True) if _json(path).get("refresh_token") else None


def _text(path: Path) -> str:
    with suppress(OSError, UnicodeDecodeError, ValueError):  # a token is no path, and may be too long for one
        return path.read_text(encoding="utf-8").strip()
    return ""


def _json(path: Path) -> dict[str, str]:
    with suppress(ValueError):
        values = json.loads(_text(path))
        if isinstance(values, dict):
            return {name: value for name, value in values.items() if isinstance(value, str)}
    return {}
