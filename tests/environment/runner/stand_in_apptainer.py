"""A stand-in for Apptainer, which Debian does not have: takes the options that it has, and runs in bubblewrap.

It checks its command line and its variables, as the real one would refuse or leave out what is wrong in them, and does
with a folder as image what the real one does. It has been written after Apptainer 1.4.5.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

_PREFIX = "APPTAINERENV_"
_REFUSED = 255


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write("apptainer version 1.4.5\n")
        return
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--silent", action="store_true", required=True)
    parser.add_argument("exec", choices=["exec"])
    for flag in ("--containall", "--no-home", "--cleanenv", "--no-privs", "--no-eval"):
        parser.add_argument(flag, action="store_true", required=True)
    parser.add_argument("--net", action="store_true")
    parser.add_argument("--nv", action="store_true")
    for option in ("--network", "--hostname", "--pwd", "--workdir", "--overlay"):
        parser.add_argument(option)
    parser.add_argument("--bind", action="append", default=[])
    parser.add_argument("image", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    try:
        options = parser.parse_args()
    except (argparse.ArgumentError, SystemExit):
        sys.exit(_REFUSED)
    if not all(Path(folder).is_dir() for folder in (options.workdir, options.overlay, options.image)):
        sys.exit(_REFUSED)
    own = {
        name.removeprefix(_PREFIX): value for name, value in os.environ.items() if name.startswith(_PREFIX)
    }
    own |= {"HOME": "/home/of-the-operator"}  # whatever is asked for
    arguments = [
        "bwrap",
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--die-with-parent",
    ]
    arguments += ["--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--hostname", options.hostname]
    if options.net and options.network == "none":
        arguments += ["--unshare-net"]
    # What is laid over the image is a copy here: the real one mounts an overlay.
    root = Path(options.overlay) / "root"
    os.system(f"cp -a {options.image} {root}")
    arguments += ["--bind", str(root), "/", "--proc", "/proc", "--dev", "/dev", "--clearenv"]
    for bind in options.bind:
        source, target, mode = bind.split(":")
        arguments += ["--ro-bind" if mode == "ro" else "--bind", source, target]
    for name, value in own.items():
        arguments += ["--setenv", name, value]
    os.execvp("bwrap", [*arguments, "--chdir", options.pwd, *options.command])


if __name__ == "__main__":
    main()
