"""One hash for all that an agent folder holds, so that a result can name the agent that made it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

IGNORED = frozenset({"__pycache__", ".git", ".DS_Store"})


def folder_version(folder: Path) -> str:
    """Hash names, executable bits and contents of a folder's files; twelve digits tell agents apart."""
    total = hashlib.sha256()
    for path in sorted(_files(folder)):
        if path.is_symlink():
            kind, content = b"link", os.fsencode(path.readlink())
        else:
            kind = b"program" if os.access(path, os.X_OK) else b"file"
            with path.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").digest()
        for piece in (os.fsencode(path.relative_to(folder)), kind, content):
            total.update(len(piece).to_bytes(8) + piece)
    return total.hexdigest()[:12]


def _files(folder: Path) -> list[Path]:
    found = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in IGNORED]
        found += [Path(parent, name) for name in files if name not in IGNORED]
    return [path for path in found if path.is_symlink() or path.is_file()]
