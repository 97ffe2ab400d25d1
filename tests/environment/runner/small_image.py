"""A small image of this machine's own programs, as `images export` would have written it; no daemon is needed."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import shutil
import subprocess
import tarfile
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

from mlebench_console.environment.runner import layout
from mlebench_console.environment.runner.protocol import ImageFile
from tests.shared import made_once

_PROGRAMS = (
    *(
        "bash",
        "cat",
        "chmod",
        "cp",
        "curl",
        "env",
        "grep",
        "id",
        "kill",
        "ln",
        "ls",
        "mkdir",
        "mknod",
        "mount",
    ),
    *("mv", "python3", "rm", "setsid", "sh", "sleep", "touch", "tr", "true", "unshare"),
)
_TABLES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nnonroot:x:1000:1000::/home/nonroot:/bin/bash\n",
    "etc/group": "root:x:0:\nnonroot:x:1000:\n",
    "etc/hosts": "",
    "etc/mark": "as it was built\n",
    "home/agent/start.sh": 'echo start >> "$CODE_DIR/starts"\neval "$SCRIPT"\n',
}
_FOLDERS = ("dev", "etc", "home/agent", "home/nonroot", "opt", "proc", "root", "run", "sys", "tmp", "var/tmp")
_VARIABLES = (("PATH", "/usr/local/bin:/usr/bin:/bin"), ("OF_THE_IMAGE", "yes"))


def small_image() -> ImageFile:
    """Return the image, which is made once for a test run."""
    file = made_once("small-image", _write) / "image.tar.gz"
    return ImageFile(
        name="small",
        path=str(file),
        sha256=_digest(file),
        bytes=file.stat().st_size,
        unpacked_bytes=_unpacked_bytes(file),
        image="sha256:of-the-small-image",
        created=time.time(),
        variables=_VARIABLES,
    )


def damaged(image: ImageFile, folder: Path) -> ImageFile:
    """Return an image whose file has been changed since it was made."""
    changed = folder / Path(image.path).name
    changed.write_bytes(b"x" + Path(image.path).read_bytes()[1:])
    return replace(image, path=str(changed))


@cache
def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@cache
def _unpacked_bytes(file: Path) -> int:
    with gzip.open(file) as stream:
        return stream.seek(0, io.SEEK_END)


def _write(folder: Path) -> None:
    folder.mkdir()
    with tarfile.open(folder / "image.tar.gz", "w:gz", compresslevel=1) as archive:
        for name in (*_FOLDERS, "usr", "usr/bin", "usr/lib"):
            _add(archive, name, tarfile.DIRTYPE)
        for name in ("bin", "lib", "lib64", "sbin"):
            _add(archive, name, tarfile.SYMTYPE, link="usr/bin" if name in ("bin", "sbin") else "usr/lib")
        for name, text in _TABLES.items():
            _add(archive, name, tarfile.REGTYPE, text.encode())
        for name in ("instructions.txt", "instructions_obfuscated.txt", "validate_submission.sh"):
            _add(archive, f"home/{name}", tarfile.REGTYPE, (layout.own_files() / name).read_bytes())
        libraries: set[str] = set()
        for name in _PROGRAMS:
            found = shutil.which(name, path="/usr/bin:/bin")
            if found is None:
                continue  # only tests that need more of a machine than this one has would miss it
            program = Path(found).resolve()
            _add(archive, f"usr/bin/{name}", tarfile.REGTYPE, program.read_bytes())
            libraries |= _libraries_of(program)
        standard, extensions = _python()
        for path in extensions:
            libraries |= _libraries_of(path)
        for name in sorted(libraries):
            _add(archive, f"usr/lib/{Path(name).name}", tarfile.REGTYPE, Path(name).read_bytes())
        archive.add(standard, str(standard).lstrip("/"), filter=_without_what_is_large)


def _python() -> tuple[Path, list[Path]]:
    """Return the standard library of the system's own Python, and its extensions."""
    asked = [shutil.which("python3", path="/usr/bin:/bin") or "python3", "-I", "-c"]
    told = subprocess.run(
        [*asked, "import sysconfig; print(sysconfig.get_path('stdlib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    standard = Path(told.stdout.strip())
    return standard, sorted((standard / "lib-dynload").glob("*.so"))


def _without_what_is_large(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    left_out = (
        "__pycache__",
        "test",
        "tests",
        "idlelib",
        "tkinter",
        "lib2to3",
        "ensurepip",
        "pydoc_data",
        "dist-packages",
    )
    name = Path(member.name).name
    return None if name in left_out or name.startswith("config-") else member


def _libraries_of(program: Path) -> set[str]:
    told = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"(/\S+\.so\S*)", told))


def _add(archive: tarfile.TarFile, name: str, kind: bytes, content: bytes = b"", *, link: str = "") -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, link, len(content)
    member.mode = 0o755
    archive.addfile(member, io.BytesIO(content))
