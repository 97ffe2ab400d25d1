"""`prices`: what models cost, and which models have no price."""

from __future__ import annotations

import typer

from mlebench_console.console.cli.common import Context, new_group
from mlebench_console.console.cli.output import say, say_json, say_rows
from mlebench_console.state.usage import model_calls

app = new_group()


@app.command()
def check(context: Context) -> None:
    """List the models that runs have used and that have no price; exit code 1 if there are any."""
    from mlebench_console.console.nouns.call import MODEL_USE
    from mlebench_console.engine.model_costs import spending_of

    prices = context.prices
    with context.reading_state() as database:
        totals = spending_of(model_calls.of_all(database), prices).models
    used = [total for total in totals if total.input_tokens or total.output_tokens]
    missing = [total for total in used if total.cost is None]
    if context.json:
        say_json(
            {
                "checked": prices.checked.isoformat(),
                "models": len(used),
                "without_price": [
                    {
                        "provider": total.provider,
                        "model": total.model,
                        "calls": total.calls,
                        "input_tokens": total.input_tokens,
                        "output_tokens": total.output_tokens,
                    }
                    for total in missing
                ],
            }
        )
    elif missing:
        say_rows(MODEL_USE.columns("provider model calls in out"), missing)
        say(
            'Name their prices in config.toml: [model_prices."MODEL*"] with input and output, for a million tokens.'
        )
    else:
        say(f"every model used has a price ({len(used)} models; prices of {prices.checked.isoformat()})")
    if missing:
        raise typer.Exit(1)
