"""`verify`: check a bundle that others have sent."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument

from mlebench_console.console.cli.common import AtOnce, Context, DataDir, new_group
from mlebench_console.console.cli.output import say, say_json, say_on_stderr

app = new_group()


@app.command()
def bundle(
    context: Context,
    folder: Annotated[Path, Argument(metavar="DIR", help="The bundle's folder.")],
    data_dir: DataDir = None,
    at_once: AtOnce = None,
) -> None:
    """Grade its submissions again with the data prepared here, and compute its row; exit code 1 on differences."""
    from mlebench_console.engine.scoreboard.audit import DifferenceKind
    from mlebench_console.engine.scoreboard.verification import verify

    found = verify(folder, context.data_dir(data_dir), at_once=at_once or os.cpu_count() or 1)
    if context.json:
        say_json(found.document())
    else:
        row_differs = any(one.kind is DifferenceKind.ROW for one in found.differences)
        row = "differs" if row_differs else "made anew, same"
        say(f"scores      {found.scores} computed anew, same")
        say(f"row         {row}")
        say(f"unchecked   {len(found.unchecked)}")
        for why, count in Counter(why for _, why in found.unchecked).most_common():
            say(f"  {count:4}  {why}")
        say(f"differences {len(found.differences)}")
    for one in found.differences:
        say_on_stderr(f"differs: {one.text}")
    if found.differences:
        raise typer.Exit(1)
