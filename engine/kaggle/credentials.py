"""Find Kaggle credentials, in the places and in the order of Kaggle's own client; nothing is sent anywhere."""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mlebench_console.engine.kaggle import CredentialsRefused

NO_CREDENTIALS_STEP = "Make a token on kaggle.com (Settings, API) and put it into ~/.kaggle/access_token."
VARIABLES = ("KAGGLE_API_TOKEN", "KAGGLE_USERNAME", "KAGGLE_KEY", "KAGGLE_CONFIG_DIR")
"""The environment variables for credentials; a running process keeps those of its start."""

_SECRET = re.compile(r"[!-~]+")


@dataclass(frozen=True)
class Credentials:
    """A token, a username with its key, or an OAuth login; or the problem why they can't be used.

    Attributes:
        source: where they were found, for people; the secrets themselves are never shown.
        file: the file with the secret; None: it is in the environment.
        refresh_token: of an OAuth login, to get access tokens.
        access_token: the last access token of an OAuth login.
        expires: when that access token expires, according to its file.
        problem: why they can't be used; empty if they can.
    """

    source: str
    file: Path | None = None
    token: str = field(default="", repr=False)
    username: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    access_token: str = field(default="", repr=False, compare=False)
    expires: str = field(default="", repr=False, compare=False)
    problem: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must not appear in any text."""
        return tuple(filter(None, (self.token, self.key, self.refresh_token, self.access_token)))


class _Unusable(Exception):
    """A file or a value has no valid credentials, and why; the text never shows its content."""


def find_credentials(
    environment: Mapping[str, str] | None = None, home: Path | None = None
) -> tuple[Credentials, ...]:
    """Return all credentials, in the order in which they are tried."""
    variables = os.environ if environment is None else environment
    own = (Path.home() if home is None else home) / ".kaggle"
    found: list[Credentials] = []
    given = variables.get("KAGGLE_API_TOKEN", "").strip()
    if given:
        found.append(_token_in("KAGGLE_API_TOKEN", given, _file_named(given)))
    for path in (own / "access_token", own / "access_token.txt"):
        if path.exists():
            found.append(_token_in(str(path), "", path))
    if variables.get("KAGGLE_CONFIG_DIR"):
        folder = Path(variables["KAGGLE_CONFIG_DIR"])
    elif own.exists():
        folder = own
    else:
        folder = Path(variables.get("XDG_CONFIG_HOME") or own.parent / ".config") / "kaggle"
    path = folder / "kaggle.json"
    values, problem = _json(path)
    username = variables.get("KAGGLE_USERNAME") or values.get("username", "")
    if username and variables.get("KAGGLE_KEY"):
        found.append(_pair("KAGGLE_USERNAME and KAGGLE_KEY", username, variables["KAGGLE_KEY"]))
    if problem:
        found.append(Credentials(str(path), path, problem=problem))
    elif username and values.get("key"):
        found.append(_pair(str(path), username, values["key"], path))
    path = own / "credentials.json"
    values, problem = _json(path)
    if problem:
        found.append(Credentials(str(path), path, problem=problem))
    elif values.get("refresh_token"):
        found.append(
            Credentials(
                str(path),
                path,
                refresh_token=values["refresh_token"],
                access_token=values.get("access_token", ""),
                expires=values.get("access_token_expiration", ""),
            )
        )
    return tuple(each for each in found if each.problem or each.token or each.key or each.refresh_token)


def require_credentials() -> None:
    """Check that there are credentials to sign in with.

    Raises:
        CredentialsRefused: there are no credentials that can be used.
    """
    found = find_credentials()
    if all(each.problem for each in found):
        raise none_accepted(found, ())


def none_accepted(found: Sequence[Credentials], refused: Sequence[Credentials]) -> CredentialsRefused:
    """Return the problem that no credentials can be used; `refused` are those that Kaggle has refused."""
    sources = ", ".join(dict.fromkeys(each.source for each in refused))
    answered = [f"it answered 401 to those in {sources}"] if refused else []
    unusable = [f"those in {each.source} can't be used: {each.problem}" for each in found if each.problem]
    why = "; ".join([*answered, *unusable]) or "no Kaggle credentials were found"
    what = "Kaggle does not accept the credentials" if refused else "there are no usable Kaggle credentials"
    return CredentialsRefused(what, why, NO_CREDENTIALS_STEP)


def _token_in(source: str, text: str, path: Path | None) -> Credentials:
    """Return the credentials with the token of a text or a file; without a token or problem where it is empty."""
    try:
        found = text if path is None else _text(path)
        return Credentials(source, path, token=_checked(found) if found else "")
    except _Unusable as error:
        return Credentials(source, path, problem=str(error))


def _file_named(text: str) -> Path | None:
    with suppress(OSError, ValueError):  # a token is not a path, and may be too long for one
        return Path(text) if Path(text).is_file() else None
    return None


def _pair(source: str, username: str, key: str, path: Path | None = None) -> Credentials:
    try:
        return Credentials(source, path, username=_checked(username), key=_checked(key))
    except _Unusable as error:
        return Credentials(source, path, problem=str(error))


def _checked(value: str) -> str:
    """Return a secret that is valid in a header; an invalid one would be repeated in the text of an error."""
    stripped = value.strip()
    lines = len(stripped.splitlines())
    if lines > 1:
        raise _Unusable(f"it has {lines} lines instead of one token")
    if not _SECRET.fullmatch(stripped):
        raise _Unusable("it has a character that no token has")
    return stripped


def _text(path: Path) -> str:
    """Read a text file, which may begin with a byte order mark; empty where there is none."""
    try:
        content = path.read_bytes()
        wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return content.decode("utf-16" if wide else "utf-8-sig").strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise _Unusable(f"it can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _Unusable("it is not UTF-8 text") from None


def _json(path: Path) -> tuple[dict[str, str], str]:
    """Return the strings of a JSON file, or why it can't be used."""
    try:
        text = _text(path)
        values = json.loads(text) if text else {}
    except _Unusable as error:
        return {}, str(error)
    except ValueError:
        return {}, "it is not JSON"
    if not isinstance(values, dict):
        return {}, "it is not a JSON object"
    return {name: value for name, value in values.items() if isinstance(value, str)}, ""
