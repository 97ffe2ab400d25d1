"""Parse Dockerfiles as far as builds need it: which files they copy, and adding secrets to all of their steps."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

# The secrets of builds by name, with the variables by which programs find them.
SECRETS = {
    "ca": (
        "SSL_CERT_FILE",
        "PIP_CERT",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "GIT_SSL_CAINFO",
        "NODE_EXTRA_CA_CERTS",
    ),
    "pip": ("PIP_CONFIG_FILE",),
}
_PLACE = "/run/secrets/"
_KEYWORD = re.compile(r"\s*([A-Za-z]+)\s+")
_HEREDOC = re.compile(r"""<<-?\s*(["']?)(\w+)\1""")
_OF_ANOTHER_STAGE = "--from="


def with_secrets(dockerfile: str, names: Collection[str]) -> str:
    """Return a Dockerfile whose steps all have these secrets, so that they can use the network unchanged.

    The image contains the paths of the secrets, but not their content.
    """
    mounts = "".join(f"--mount=type=secret,id={name},target={_PLACE}{name},mode=0444 " for name in names)
    variables = "".join(f"ARG {variable}={_PLACE}{name}\n" for name in names for variable in SECRETS[name])
    changed: list[str] = []
    for keyword, text in _instructions(dockerfile):
        found = _KEYWORD.match(text)
        if keyword == "RUN" and found is not None:
            changed.append(text[: found.end(1)] + f" {mounts}" + text[found.end(1) :].lstrip(" \t"))
        else:
            changed.append(text)
        if keyword == "FROM":
            changed.append(variables)
    return "".join(changed)


def copied(dockerfile: str) -> tuple[str, ...]:
    """List the files and folders of the context that a Dockerfile copies, as written there."""
    found: list[str] = []
    for keyword, text in _instructions(dockerfile):
        if keyword in ("ADD", "COPY"):
            words = text.replace("\\\n", " ").split()[1:]
            flags = [word for word in words if word.startswith("--")]
            if not any(flag.startswith(_OF_ANOTHER_STAGE) for flag in flags):
                found += [word for word in words[:-1] if word not in flags]
    return tuple(found)


def _instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    """Yield the keyword of each instruction and all of its lines; a comment or empty line has no keyword."""
    lines = iter(f"{line}\n" for line in dockerfile.splitlines())
    for line in lines:
        found = _KEYWORD.match(line)
        if found is None or line.lstrip().startswith("#"):
            yield "", line
            continue
        text, last = line, line
        # Comments and empty lines don't end a continued instruction.
        while last.rstrip().endswith("\\") or (text != last and last.lstrip().startswith("#")):
            last = next(lines, "")
            if not last:
                break
            text += last
        for _quote, end in _HEREDOC.findall(text):
            for last in lines:
                text += last
                if last.strip() == end:
                    break
        yield found.group(1).upper(), text
