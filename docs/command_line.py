"""The reference of the command line, made from the commands themselves when the site is built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from restive.cli import app

__all__ = ["commands_page"]


def commands_page() -> str:
    """Return a section for each command, with a table of its arguments and options."""
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    return "\n".join(part for name, own in commands.items() for part in _parts(name, own))


def _parts(name: str, command: Any) -> Iterator[str]:
    inside = getattr(command, "commands", None)
    if inside is None:
        yield _section(name, command)
        return
    yield f"## restive {name}\n\n{_said(command)}\n"
    for part, own in inside.items():
        yield _section(f"{name} {part}", own, "###")


def _section(name: str, command: Any, level: str = "##") -> str:
    shown = [p for p in command.params if p.name != "help" and not getattr(p, "hidden", False)]
    rows = [row for row in (_row(p) for p in shown) if row]
    table = ["| | what | default |", "|---|---|---|", *rows] if rows else []
    return "\n".join([f"{level} restive {name}", "", _said(command), "", *table, ""])


def _said(command: Any) -> str:
    return " ".join((command.help or "").split())


def _row(param: Any) -> str:
    is_option = param.param_type_name == "option"
    if is_option:
        shown = ", ".join(f"`{opt}`" for opt in [*param.opts, *param.secondary_opts])
    else:
        shown = f"`{param.metavar or param.name.upper()}`"
    default = "" if callable(param.default) else param.default
    if param.required:
        default = "needed"
    elif getattr(param, "is_flag", False) or default in (None, "", []):
        default = ""
    else:
        default = f"`{default}`"
    said = (param.help or "").replace("|", "\\|").replace("[[arm]]", "`[[arm]]`")
    return f"| {shown} | {said} | {default} |"
