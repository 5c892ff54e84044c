"""`restive warm-up`."""

from __future__ import annotations

__all__ = ["warm_up"]


def warm_up() -> None:
    """Compile everything now, so that later commands start fast."""
    from restive.cli.progress import bar
    from restive.warm_up import CHORES
    from restive.warm_up import warm_up as compile_all

    with bar("compiling (first run only)") as show:
        done: list[str] = []

        def tell(chore: str) -> None:
            done.append(chore)
            show(chore, len(done) / len(CHORES))

        compile_all(tell)
