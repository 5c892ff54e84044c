"""The tables [problem] and [prior] of a study's file, checked by pydantic.

Every check says what to do; `restive.experiment.mistakes` adds the place in the file. What is made
of a table is kept with it, since the points of a sweep share their tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from restive import zoo
from restive.arguments import MOST
from restive.errors import ProblemError
from restive.experiment.mistakes import PlacedError
from restive.prior import (
    ArmPrior,
    DirichletArmPrior,
    IndependentPrior,
    JointPrior,
    Prior,
    beta_prior,
    grid_prior,
)
from restive.problem import Arm, RestlessBandit
from restive.problem_file import (
    ARM_KEYS,
    MOST_ARMS,
    load_problem,
    parse_toml,
    problem_to_toml,
    read_arm,
    read_arms,
    refuse_unknown_keys,
)

__all__ = [
    "BetaTable",
    "Count",
    "Data",
    "DirichletTable",
    "PriorArm",
    "PriorBandit",
    "PriorTable",
    "Problem",
    "Table",
    "num_arms",
]

Data = dict[str, Any]
Count = Annotated[int, Field(ge=1, le=MOST)]
ArmCount = Annotated[int, Field(ge=1, le=MOST_ARMS)]
Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@contextmanager
def _without(place: str) -> Iterator[None]:
    """Let messages not begin with a place: the place in the file is added later."""
    try:
        yield
    except ProblemError as error:
        raise ProblemError(str(error).removeprefix(f"{place}: ")) from None


def _checked_arm(table: Data) -> Data:
    with _without("arm"):
        read_arm(table, "arm")
    return table


def _checked_candidate(table: Data) -> Data:
    with _without("candidate"):
        _check_candidate(table)
    return table


def _check_candidate(table: Data) -> None:
    if "count" in table:
        raise ProblemError("a candidate has no count; give it a larger weight")
    refuse_unknown_keys(table, ("weight", *ARM_KEYS), "candidate")
    weight = table.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < 1e300:
        raise ProblemError(f"weight must be a number from 0 on, got {weight!r:.60}")
    _candidate(table)


def _candidate(table: Data) -> Arm:
    fields = {key: value for key, value in table.items() if key != "weight"}
    return read_arm(fields, "candidate")[0]


ArmTable = Annotated[Data, AfterValidator(_checked_arm)]
CandidateTable = Annotated[Data, AfterValidator(_checked_candidate)]


class Table(BaseModel):
    """A table of a study: unknown keys are refused, and numbers are not guessed from text."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def __eq__(self, other: object) -> bool:
        """Whether both say the same; what was made of it meanwhile does not matter."""
        return isinstance(other, Table) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]


WANTED = (
    "levels = [...], beta = ..., [prior.dirichlet], [[prior.arm]], [[prior.bandit]] or zoo = ..."
)


class ZooName(Table):
    """Anything that a zoo instance can stand for."""

    zoo: str | None = None

    @field_validator("zoo")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        return None if name is None else zoo.load(name).name


class Problem(ZooName):
    """The truth: arms and pulls, or the name of a zoo instance."""

    name: str | None = None
    num_pulls: Count | None = None
    arm: list[ArmTable] | None = None
    _made: dict[int, RestlessBandit] = PrivateAttr(default_factory=dict)  # by pulls

    @model_validator(mode="before")
    @classmethod
    def _file_inlined(cls, data: Any, info: ValidationInfo) -> Any:
        """Take in the file that is named, so that the study is whole without it."""
        if not isinstance(data, dict) or "file" not in data:
            return data
        if extra := sorted(data.keys() - {"file", "name"}):
            raise ProblemError(f"give file or {extra[0]}, not both")
        if not isinstance(data["file"], str):
            raise ProblemError(f"file must be text, got {data['file']!r:.60}")
        path = (info.context or {}).get("folder", Path()) / data["file"]
        inlined = parse_toml(problem_to_toml(load_problem(path)))
        return {"name": data.get("name", path.stem), **inlined}

    @model_validator(mode="after")
    def _whole(self) -> Problem:
        _require_one({"zoo": self.zoo, "arm": self.arm}, "zoo = ..., file = ... or [[problem.arm]]")
        if self.arm is not None and self.num_pulls is None:
            raise ProblemError("num_pulls is missing beside the arms")
        if self.arm is not None:
            self.bandit(None)
        if self.zoo is not None and zoo.load(self.zoo).bandit is None:
            raise ProblemError(
                f"the zoo's {self.zoo} has no fixed truth; use kind = 'bayesian' without [problem]"
            )
        return self

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        known = None if self.zoo is None else zoo.load(self.zoo).bandit
        return num_arms(self.arm or []) if known is None else known.num_arms

    def bandit(self, num_pulls: int | None) -> RestlessBandit:
        """Return the true bandit, with another number of pulls where one is given."""
        known = None if self.zoo is None else zoo.load(self.zoo).bandit
        pulls = num_pulls or self.num_pulls or (0 if known is None else known.num_pulls)
        if pulls not in self._made:
            if known is None:
                assert self.arm is not None
                self._made[pulls] = RestlessBandit(read_arms(self.arm), pulls)
            else:
                self._made[pulls] = (
                    known if pulls == known.num_pulls else RestlessBandit(known.arms, pulls)
                )
        return self._made[pulls]


class BetaTable(Table):
    """Channels whose probabilities have Beta laws; the rewards are the problem's unless given."""

    p01: list[float] = [1.0, 1.0]
    p11: list[float] = [1.0, 1.0]
    rewards: list[float] | None = None
    particles: Count | None = None

    @model_validator(mode="after")
    def _whole(self) -> BetaTable:
        self.prior(None)
        return self

    def prior(self, rewards: Sequence[float] | None) -> DirichletArmPrior:
        """Return the prior of an arm with these rewards, unless others are given; else 0 and 1."""
        known = self.rewards or rewards or [0.0, 1.0]
        with _without("prior"), _without("beta_prior"):
            arm = beta_prior(1, self.p01, self.p11, known, self.particles).arms[0]
        assert isinstance(arm, DirichletArmPrior)
        return arm


class DirichletTable(Table):
    """Arms whose rows have Dirichlet laws; the rewards are the problem's unless given."""

    active: list[list[float]]
    passive: list[list[float]] | None = None
    rewards: list[float] | None = None
    particles: Count | None = None

    @model_validator(mode="after")
    def _whole(self) -> DirichletTable:
        self.prior([0.0] * len(self.active))
        return self

    def prior(self, rewards: Sequence[float] | None) -> DirichletArmPrior:
        """Return the prior of an arm with these rewards, unless others are given."""
        known = self.rewards or rewards
        if known is None:
            raise ProblemError("rewards is missing: no problem says them")
        with _without("prior"), _without("arm"):
            return DirichletArmPrior(self.active, self.passive, known, particles=self.particles)


class PriorArm(Table):
    """What some arms may be, each by itself; or all alike, if pooled."""

    candidate: list[CandidateTable] | None = Field(default=None, min_length=1)
    beta: BetaTable | None = None
    dirichlet: DirichletTable | None = None
    count: ArmCount = 1
    pooled: bool = False
    _finite: ArmPrior | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _whole(self) -> PriorArm:
        given = {"candidate": self.candidate, "beta": self.beta, "dirichlet": self.dirichlet}
        _require_one(given, "[[prior.arm.candidate]], beta = ... or dirichlet = ...")
        if self.candidate is not None:
            weights = [row.get("weight", 1.0) for row in self.candidate]
            self._finite = ArmPrior([_candidate(row) for row in self.candidate], weights)
        return self

    def prior(self, rewards: Sequence[float] | None) -> ArmPrior | DirichletArmPrior:
        """Return what an arm of these rewards may be."""
        if self._finite is not None:
            return self._finite
        table = self.beta or self.dirichlet
        assert table is not None
        return table.prior(rewards)


class PriorBandit(Table):
    """One system of a joint prior."""

    arm: list[ArmTable] = Field(min_length=1)
    weight: Weight = 1.0


class PriorTable(ZooName):
    """What is held possible: a grid, a continuous prior, a prior by arm, systems, or the zoo's."""

    levels: list[float] | None = None
    beta: BetaTable | None = None
    dirichlet: DirichletTable | None = None
    num_arms: ArmCount | None = None
    arm: list[PriorArm] | None = None
    bandit: list[PriorBandit] | None = None
    _made: dict[tuple[Any, ...], Prior] = PrivateAttr(default_factory=dict)

    @field_validator("levels")
    @classmethod
    def _grid(cls, levels: list[float] | None) -> list[float] | None:
        first: dict[float, int] = {}
        for at, level in enumerate(levels or ()):
            if not 0 <= level <= 1:
                raise PlacedError((at,), f"must be a probability, from 0 to 1, got {level}")
            if level in first:
                raise PlacedError(
                    (at,), f"{level} is there already, as levels[{first[level]}]; give each once"
                )
            first[level] = at
        if levels is not None:
            grid_prior(levels, 1)
        return levels

    @model_validator(mode="after")
    def _whole(self) -> PriorTable:
        given = {
            "zoo": self.zoo, "levels": self.levels, "beta": self.beta, "dirichlet": self.dirichlet,
            "arm": self.arm, "bandit": self.bandit,
        }  # fmt: skip
        _require_one(given, WANTED)
        if self.num_arms is not None and not self._same_for_all:
            raise ProblemError("num_arms goes with levels, beta or dirichlet only")
        if self.arm is not None and sum(table.count for table in self.arm) > MOST_ARMS:
            raise ProblemError(f"more than {MOST_ARMS:,} arms in all; check count")
        if self.bandit is not None:
            self.prior(None, 1)
        return self

    @property
    def num_arms_said(self) -> int | None:
        """Number of arms, None where a grid leaves it to the problem."""
        if self.zoo is not None:
            return zoo.load(self.zoo).prior.num_arms
        if self.arm is not None:
            return sum(table.count for table in self.arm)
        if self.bandit is not None:
            return num_arms(self.bandit[0].arm)
        return self.num_arms

    @property
    def _same_for_all(self) -> str | None:
        """Name of what is said once for all arms, None where arms are said one by one."""
        names = ("levels", "beta", "dirichlet")
        return next((name for name in names if getattr(self, name) is not None), None)

    def prior(self, bandit: RestlessBandit | None, num_pulls: int) -> Prior:
        """Return the prior; what is said once is for as many arms as it says, or the problem has.

        Continuous priors take the rewards of the problem's arms.
        """
        rewards = () if bandit is None else tuple(tuple(a.rewards.tolist()) for a in bandit.arms)
        # a joint prior's systems know their pulls, the others do not
        key = rewards, num_pulls if self.bandit is not None else 0
        if key not in self._made:
            self._made[key] = self._make(rewards, num_pulls)
        return self._made[key]

    def _make(self, rewards: tuple[tuple[float, ...], ...], num_pulls: int) -> Prior:
        if self.zoo is not None:
            return zoo.load(self.zoo).prior
        if self.bandit is not None:
            bandits = [RestlessBandit(read_arms(table.arm), num_pulls) for table in self.bandit]
            return JointPrior(bandits, [table.weight for table in self.bandit])
        if self.arm is not None:
            tables = [table for table in self.arm for _ in range(table.count)]
            return IndependentPrior(_shared(tables, rewards), _pools(self.arm))
        count = self.num_arms or len(rewards)
        if not count:
            raise PlacedError(("prior",), f"num_arms is missing beside {self._same_for_all}")
        table = self.beta or self.dirichlet or _Grid(self.levels or [])
        return IndependentPrior(_shared([table] * count, rewards))


@dataclass(frozen=True)
class _Grid:
    """The candidates (p01, p11) in levels x levels."""

    levels: list[float]

    def prior(self, rewards: Sequence[float] | None) -> ArmPrior:
        """Return the prior of an arm with these rewards; 0 and 1 if no problem says them."""
        arm = grid_prior(self.levels, 1, rewards or (0.0, 1.0)).arms[0]
        assert isinstance(arm, ArmPrior)
        return arm


def _shared(
    tables: Sequence[PriorArm | BetaTable | DirichletTable | _Grid],
    rewards: tuple[tuple[float, ...], ...],
) -> list[ArmPrior | DirichletArmPrior]:
    """Return the prior of each arm, one object for all that are equal."""
    made: dict[Any, ArmPrior | DirichletArmPrior] = {}
    arms = []
    for k, table in enumerate(tables):
        known = rewards[k] if k < len(rewards) else None
        key = id(table), known
        if key not in made:
            try:
                made[key] = table.prior(known)
            except ProblemError as error:
                raise PlacedError(("prior",), f"arm {k}: {error}") from None
        arms.append(made[key])
    return arms


def _pools(tables: Sequence[PriorArm]) -> list[range]:
    ends = list(accumulate(table.count for table in tables))
    return [
        range(end - table.count, end)
        for table, end in zip(tables, ends, strict=True)
        if table.pooled
    ]


def num_arms(tables: list[Data]) -> int:
    """Return the number of arms in tables, some of which have a count."""
    return sum(table.get("count", 1) for table in tables)


def _require_one(given: Mapping[str, Any], wanted: str) -> None:
    names = [name for name, value in given.items() if value is not None]
    if not names:
        raise ProblemError(f"needs {wanted}")
    if len(names) > 1:
        raise ProblemError(f"give {names[0]} or {names[1]}, not both")
