"""Studies as TOML files: what is run, checked before anything is.

A study names a prior, policy mappings, a horizon and, where the truth is fixed, a problem::

    title = "Four channels"
    kind = "frequentist"               # or "bayesian": the truth is drawn from the prior
    policy_mappings = ["myopic", "whittle"]
    horizon = 10_000
    replications = 1000
    seed = 0

    [problem]                          # or file = "channels.toml", or zoo = "paper-frequentist"
    num_pulls = 2
    [[problem.arm]]
    p01 = 0.3
    p11 = 0.7
    count = 4

    [prior]                            # a grid; or beta, dirichlet, arm, bandit, zoo = "..."
    levels = [0.1, 0.3, 0.5, 0.7, 0.9]

    [sweep]                            # optional: lists that are crossed
    num_pulls = [1, 2]
    prior.levels = [[0.3, 0.7], [0.1, 0.5, 0.9]]

Where arms also pay while not pulled, problem and prior both say ``pay = "always"`` or give
``passive_rewards``. A study becomes cases, one per mapping and point of the sweep. A case is plain
data: it travels to a worker as text and is all that a worker needs.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from restive.arguments import counted, one_line
from restive.errors import ProblemError
from restive.learn.learners import describe
from restive.problem.changing import ChangingBandit
from restive.problem.toml_text import parse_toml, placed, read_text, require_shallow, toml_of
from restive.studies.mistakes import place_of, told, told_at
from restive.studies.settings import (
    CaseSettings,
    Data,
    StudyTable,
    beside_instance,
    canonical_json,
    keys_at,
)

__all__ = [
    "Case",
    "Study",
    "digest",
    "load_study",
    "study_from_data",
    "study_from_toml",
]

MOST_CASES = 10_000
NOT_SWEPT = ("title", "replications", "learners", "policy_mappings", "sweep")
HOLDING = {"instance", "kind", "problem", "prior", "num_pulls"}  # keys that others must fit
OWN_LABELS = ("learner", "mapping")
DEFAULTED = {name for name, field in CaseSettings.model_fields.items() if not field.is_required()}
COLUMNS = ("arm",)  # of an exported table
SHORT = 60  # letters of a swept value that are shown as they are
LEGEND = 200  # letters of a longer one in the legend

Label = str | int | float  # of a swept value: a number is kept as one
Swept = list[tuple[tuple[str, ...], list[Any]]]  # paths of keys, and their values


@dataclass(frozen=True, repr=False)
class Case:
    """One mapping at one point of the sweep."""

    number: int
    labels: Mapping[str, Label]  # what tells it from the others: swept values, learner and mapping
    settings: CaseSettings  # with that one learner and mapping

    def __repr__(self) -> str:
        return one_line(f"Case({self.number}: {self.title})", f"Case({self.number})")

    @property
    def mapping(self) -> str:
        """Name of the policy mapping."""
        return self.settings.policy_mappings[0]

    @property
    def name(self) -> str:
        """Name of its folder in a ledger."""
        return f"{self.number:04d}-{self.settings.learner().name}-{self.mapping}"

    @property
    def learner(self) -> str:
        """Name of the learner, with its options."""
        return describe(self.settings.learner())

    @property
    def changes(self) -> bool:
        """Whether the arms of its truth change."""
        return isinstance(self.settings.systems()[0], ChangingBandit)

    @property
    def point(self) -> str:
        """The swept values in a line; empty where nothing is swept."""
        swept = (f"{key} {text}" for key, text in self.shown.items() if key not in OWN_LABELS)
        return ", ".join(swept)

    @property
    def shown(self) -> dict[str, str]:
        """Its labels as text."""
        return {
            key: label if isinstance(label, str) else json.dumps(label)
            for key, label in self.labels.items()
        }

    @property
    def title(self) -> str:
        """Its labels in a line."""
        return ", ".join(filter(None, (self.point, self.shown.get("learner"), self.mapping)))


@dataclass(frozen=True, repr=False)
class Study:
    """A checked study."""

    title: str
    replications: int
    data: Data  # what was checked, files taken in, without title and replications
    cases: tuple[Case, ...]
    legend: tuple[str, ...] = ()  # what labels that are mere numbers (#1) stand for, a line each
    source: str = ""  # the file that it was read from

    @property
    def hash(self) -> str:
        """Digest of everything that decides the numbers of a replication."""
        return digest(self.data)

    def __repr__(self) -> str:
        cases, count = counted(len(self.cases), "case"), counted(self.replications, "replication")
        return one_line(f"Study({self.title!r}, {cases}, {count})", f"Study({cases}, {count})")

    def to_toml(self) -> str:
        """Write it as the text of a study's file, which needs no other files."""
        return toml_of({"title": self.title, "replications": self.replications, **self.data})


def digest(data: Data) -> str:
    """Return the hash of a study that is plain data."""
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()


def load_study(path: str | PathLike[str]) -> Study:
    """Read a study from a TOML file; all mistakes are reported at once, each with its place."""
    text = read_text(path)
    path = Path(path)
    try:
        study = study_from_toml(text, path.parent, path.stem)
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None
    return replace(study, source=str(path))


def study_from_toml(text: str, folder: Path = Path(), title: str = "study") -> Study:
    """Read a study from TOML text; `folder` is where the files that it names are looked for."""
    data = parse_toml(text)
    if "arm" in data:
        raise ProblemError(
            "this is a problem, not a study: `restive plan` takes it, and a study names it as "
            'problem = { file = "..." }'
        )
    return study_from_data(data, text, folder, title)


def study_from_data(
    data: Data, text: str = "", folder: Path = Path(), title: str = "study"
) -> Study:
    """Check a study that is plain data; `text` is the TOML in which its mistakes are found."""
    if not isinstance(data, dict):
        raise ProblemError(f"a study is a table, got {data!r:.60}")
    require_shallow(data)
    base = {key: value for key, value in data.items() if key != "sweep"}
    mistakes: dict[str, None] = {}  # in order, each once
    swept = _swept(data.get("sweep", {}), base, text, mistakes)
    num_points = prod(len(values) for _, values in swept)
    if num_points > MOST_CASES:
        raise ProblemError(f"sweep: {num_points:,} points, more than {MOST_CASES:,}")
    keys = _label_keys([path for path, _ in swept])
    cases: list[Case] = []
    legend: dict[str, None] = {}  # in order, each once
    whole: Data = {}
    table: StudyTable | None = None
    taken = [list(values) for _, values in swept]  # as they were checked
    context = {"folder": folder, "checked": {}}
    points = _Points(base, swept)
    for choice in product(*(range(len(values)) for _, values in swept)):
        point = points.at(choice)
        for conflict in beside_instance(point):
            words = told_at(conflict.place, str(conflict), swept, choice, text)
            mistakes[words] = None
        try:
            table = StudyTable.model_validate(point, context=context)
        except ValidationError as error:
            details = error.errors(include_url=False)
            for detail in [*details, *_seen_without(point, details, folder)]:
                mistakes[told(detail, swept, choice, text, keys_at)] = None
            continue
        dumped = table.data()
        for key in ("title", "replications"):
            dumped.pop(key, None)
        labels: dict[str, Label] = {}
        for key, (path, _), values, at in zip(keys, swept, taken, choice, strict=True):
            values[at] = _taken_in(dumped, path)
            labels[key] = _label(values[at], at)
            if labels[key] == _number(at):
                legend[f"{key} {labels[key]} is {_cut(json.dumps(values[at]))}"] = None
        # what an instance tells is not kept: at another point of the sweep it is another's
        whole = {key: value for key, value in dumped.items() if key in base or key in DEFAULTED}
        for entry, mapping in product(table.learners, table.policy_mappings):
            settings = table.only(entry, mapping)
            own = {"learner": describe(settings.learner()), "mapping": mapping}
            if table.learners == ["tsde"]:
                del own["learner"]  # goes without saying
            cases.append(Case(len(cases), labels | own, settings))
    if mistakes:
        count = [f"{len(mistakes)} mistakes"] if len(mistakes) > 1 else []
        raise ProblemError("\n  ".join([*count, *mistakes]))
    assert table is not None
    (double, times), *_ = Counter(case.title for case in cases).most_common(1)
    if times > 1:
        raise ProblemError(
            f"sweep: two cases are called {double!r}; remove the double, or name problems "
            "apart: a table [[sweep.problem]] for each, with file = ... and name = ..."
        )
    if len(cases) > MOST_CASES:
        raise ProblemError(f"{len(cases):,} cases, more than {MOST_CASES:,}")
    for (path, _), values in zip(swept, taken, strict=True):
        _remove(whole, path)  # what the last point had
        _put(whole, ("sweep", *path), values)
    return Study(table.title or title, table.replications, whole, tuple(cases), tuple(legend))


class _Points:
    """The points of a sweep; tables in which they do not differ are the same objects."""

    def __init__(self, base: Data, swept: Swept) -> None:
        self._base, self._swept = base, swept
        self._tables: dict[tuple[Any, ...], Any] = {}

    def at(self, choice: Sequence[int]) -> Data:
        """Return the study's data at the point with these values."""
        point = dict(self._base)
        chosen = list(zip(self._swept, choice, strict=True))
        for head in dict.fromkeys(path[0] for path, _ in self._swept):
            below = [(path, values[at], at) for (path, values), at in chosen if path[0] == head]
            key = (head, *(at for *_, at in below))
            if key not in self._tables:
                table = {head: deepcopy(self._base[head])} if head in self._base else {}
                for path, value, _ in below:
                    _put(table, path, value)
                self._tables[key] = table[head]
            point[head] = self._tables[key]
        return point


def _seen_without(point: Data, details: list[ErrorDetails], folder: Path) -> list[ErrorDetails]:
    """Mistakes in how keys go together, which are looked for where each key is right by itself.

    So keys that are not are left out, unless the others hang together by them.
    """
    wrong = {place[0] for detail in details if (place := place_of(detail))}
    if not wrong or wrong & HOLDING:
        return []
    rest = {key: value for key, value in point.items() if key not in wrong | {"times"}}
    if "horizon" in wrong:
        rest["horizon"] = 1
    try:
        StudyTable.model_validate(rest, context={"folder": folder})
    except ValidationError as error:
        return error.errors(include_url=False)
    return []


def _swept(sweep: Any, base: Data, text: str, mistakes: dict[str, None]) -> Swept:
    """Paths of swept keys and their values, in an order that is not that of the file."""
    found = []
    for path, values in sorted(_leaves(sweep), key=lambda leaf: leaf[0]):
        item = path, values
        above: Any = base
        for key in path[:-1]:
            above = above.get(key, {}) if isinstance(above, dict) else above
        if not path or (path[0] not in NOT_SWEPT and not (isinstance(values, list) and values)):
            wrong = f"must be a list of one value or more, got {values!r:.60}"
        elif path[0] in NOT_SWEPT:
            wrong = "cannot be swept"
        elif not isinstance(above, dict):
            wrong = f"there is no table {'.'.join(path[:-1])} in this study"
        else:
            if path == ("problem", "file"):  # files are taken in: what is swept is the problem
                item = path[:1], [above | {"file": value} for value in values]
            found.append((item[0], list(item[1])))
            continue
        mistakes[f"{placed(text, ('sweep', *path))}: {wrong}"] = None
    return found


def _leaves(sweep: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(sweep, dict):
        for key, value in sweep.items():
            yield from _leaves(value, (*path, key))
    else:
        yield path, sweep


def _label_keys(paths: list[tuple[str, ...]]) -> list[str]:
    """How the swept keys are called: by their last word where it is enough."""
    short = [path[0] if path[-1] == "name" else path[-1] for path in paths]
    return [
        key if short.count(key) == 1 and key not in COLUMNS else ".".join(path)
        for key, path in zip(short, paths, strict=True)
    ]


def _put(data: Data, path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data.setdefault(key, {})
    data[path[-1]] = deepcopy(value)


def _remove(data: Data, path: tuple[str, ...]) -> None:
    """Remove a value, and the tables that are empty without it."""
    if path[0] in data:
        if len(path) > 1:
            _remove(data[path[0]], path[1:])
        if len(path) == 1 or not data[path[0]]:
            del data[path[0]]


def _taken_in(data: Data, path: tuple[str, ...]) -> Any:
    """Value at a path, as it was checked."""
    for key in path:
        data = data.get(key, {})
    return data


def _label(value: Any, at: int) -> Label:
    if isinstance(value, dict):
        return str(value.get("name") or value.get("zoo") or _number(at))
    if isinstance(value, str | int | float):
        return value
    text = json.dumps(value)
    return text if len(text) <= SHORT else _number(at)


def _number(at: int) -> str:
    return f"#{at + 1}"


def _cut(text: str) -> str:
    return text if len(text) <= LEGEND else f"{text[: LEGEND - 3]}..."
