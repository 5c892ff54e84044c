"""Restless bandits whose arms are seen only when pulled: planning and learning.

What most users call stands here, and the rest in `types` (what calls return), `errors`, `policies`
(mappings beside the three that the paper uses, Whittle's index), `theory` (beliefs, the paper's
bounds, closed forms), `registry` (own learners and mappings, by name) and `zoo`. The stub files
beside this one (*.pyi) say where each name lives, to type checkers and to this module: a name is
imported when it is first used, so that `import restive` is quick and numba is loaded only once a
number is needed.
"""

import ast
import sys
from importlib import import_module
from os.path import dirname, join
from types import ModuleType
from typing import Any

__version__ = "0.1.0"


def _homes_in(stub: str) -> dict[str, str]:
    """Return the module of each name that a stub file imports."""
    with open(join(dirname(__file__), stub), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def _imported(space: str, name: str, homes: dict[str, str]) -> Any:
    if name not in homes:
        raise AttributeError(f"module {space!r} has no attribute {name!r}{_elsewhere(name)}")
    home = vars(import_module(homes[name]))
    # what a module does not have is a module below it, such as `errors`
    return home[name] if name in home else import_module(f"{homes[name]}.{name}")


def _elsewhere(name: str) -> str:
    """Say where a name is that somebody looks for in the wrong module."""
    found = [f"restive.{name}"] if name in _HOMES else []
    found += [f"{each.__name__}.{name}" for each in _SPACES if name in each.__all__]
    if name in import_module("restive.errors").__all__:
        found.append(f"restive.errors.{name}")
    return f"; did you mean {' or '.join(found)}?" if found else ""


class _Namespace(ModuleType):
    """A module of names that are imported when they are first used."""

    def __init__(self, name: str, said: str) -> None:
        super().__init__(f"restive.{name}", said)
        self._homes = _homes_in(f"{name}.pyi")
        self.__all__ = sorted(self._homes)

    def __getattr__(self, name: str) -> Any:
        value = _imported(self.__name__, name, self._homes)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return list(self.__all__)


types = _Namespace("types", "What calls return, and worlds that change.")
policies = _Namespace(
    "policies", "Mappings beside the paper's own, index rules as policies, and Whittle's index."
)
theory = _Namespace("theory", "Beliefs, the paper's bounds and its regret decomposition.")
registry = _Namespace("registry", "Learners and mappings by name, and how to enter your own.")
zoo = _Namespace("zoo", "Named instances, and where their numbers come from.")
_SPACES = (types, policies, theory, registry, zoo)
for _space in _SPACES:  # for `from restive.types import Agent`
    sys.modules[_space.__name__] = _space

_HOMES = _homes_in("__init__.pyi")

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604 (all names are text)


def __getattr__(name: str) -> Any:
    value = _imported(__name__, name, _HOMES)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
