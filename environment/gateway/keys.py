"""The operator's keys of providers: how they are read where they expire, and in which header they are sent."""

from __future__ import annotations

import subprocess
from pathlib import Path

from mlebench_console.environment.gateway.dialects import Dialect
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.foundation.problems import EnvironmentProblem

_COMMAND_SECONDS = 60.0
_AUTHORIZATION = "authorization"
_USUAL_HEADERS = {
    Dialect.OPENAI: _AUTHORIZATION,
    Dialect.ANTHROPIC: "x-api-key",
    Dialect.GEMINI: "x-goog-api-key",
}


def read_key(provider: ModelProvider) -> str:
    """Return the key of a provider from its file or as its command prints it; it is stored nowhere.

    Raises:
        EnvironmentProblem: there is none.
    """
    where = f"the key of the provider '{provider.name}' can't be read"
    try:
        if provider.key_file:
            text = Path(provider.key_file).expanduser().read_text("ascii")
        else:
            command = ("/bin/sh", "-c", provider.key_command)
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=_COMMAND_SECONDS
            )
            ended.check_returncode()
            text = ended.stdout.decode("ascii")
    except subprocess.CalledProcessError as error:
        raise EnvironmentProblem(where, f"its command ended with code {error.returncode}") from None
    except subprocess.TimeoutExpired:
        raise EnvironmentProblem(where, f"its command took over {_COMMAND_SECONDS:g} s") from None
    except (OSError, ValueError) as error:
        # The text of a decoding error would quote the key.
        raise EnvironmentProblem(
            where, getattr(error, "strerror", "") or "it is not a text in ASCII"
        ) from None
    key = text.strip()
    if not key or not key.isprintable():
        raise EnvironmentProblem(where, "it is not one line of text")
    return key


def key_headers(provider: ModelProvider, key: str) -> dict[str, str]:
    """Return the headers with which the operator's calls to a provider differ from an agent's, its key included."""
    headers = {name.lower(): value for name, value in provider.headers}
    if key:
        name = provider.key_header.lower() or _USUAL_HEADERS[Dialect(provider.dialect)]
        headers[name] = f"Bearer {key}" if name == _AUTHORIZATION else key
    return headers
