"""A systemd user unit that keeps the engine running over logouts and reboots."""

from __future__ import annotations

import sys

from engine.places import Places


def engine_command(places: Places) -> list[str]:
    """The command that is the engine, in the foreground."""
    return [
        sys.executable,
        "-m",
        "engine.supervisor",
        f"--state-dir={places.state_dir}",
        f"--data-dir={places.data_dir}",
        f"--config={places.config_file}",
    ]


def unit_text(places: Places) -> str:
    """Write the unit; the operator puts it below ~/.config/systemd/user and enables it."""
    command = " ".join(_quoted(part) for part in engine_command(places))
    return f"""\
[Unit]
Description=mlebench-console engine ({places.state_dir})

[Service]
ExecStart={command}
# Agents go on while the engine is away: only the engine's own process is ended.
KillMode=process
Restart=on-failure
RestartSec=5

[Install]
WantedBy=default.target
"""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
