"""`restive serve`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from restive.cli.live_places import File, last_part
from restive.cli.progress import spinner

__all__ = ["serve"]


def serve(
    file: File,
    host: Annotated[str, typer.Option(help="Where to listen; elsewhere needs TLS in front.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes one that is free.")] = 8765,
    durability: Annotated[
        str, typer.Option(help="What acknowledged results survive: power or process.")
    ] = "power",
    proxy: Annotated[
        str, typer.Option(help="Address of a proxy in front, which says who its clients are.")
    ] = "",
) -> None:
    """Put a live agent behind HTTP, with a page for its operator."""
    from restive.live.agent import LiveAgent
    from restive.serve.app import run_server

    with spinner(f"opening {last_part(file)}") as show:
        agent = LiveAgent.open(
            file, durability, progress=lambda done, total: show("events", done, total)
        )
    run_server(agent, host, port, lambda text: print(text, file=sys.stderr, flush=True), proxy)
