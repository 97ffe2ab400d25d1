"""`python -m console.tui.served`: one console behind one page of a browser, started by `console.tui.serving`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from engine.places import Places


def main() -> int:
    """Be the console until the page is closed."""
    parser = argparse.ArgumentParser(prog="served", description="The console behind a page.")
    for name in ("--state-dir", "--data-dir", "--config"):
        parser.add_argument(name, type=Path, required=True)
    for name in ("--screen", "--theme"):
        parser.add_argument(name)
    for name in ("--readonly", "--demo", "--ascii"):
        parser.add_argument(name, action="store_true")
    asked = parser.parse_args()
    if os.environ.get("TEXTUAL_DRIVER") is None:
        parser.error("it speaks to a browser only; see 'mlebench-console serve'")
    from console.tui.running import run_console

    places = Places(asked.config, asked.data_dir, asked.state_dir)
    return run_console(
        places,
        screen=asked.screen,
        readonly=asked.readonly,
        demo=asked.demo,
        ascii=asked.ascii,
        theme=asked.theme,
        in_browser=True,
    )


if __name__ == "__main__":
    sys.exit(main())
