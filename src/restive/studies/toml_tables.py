"""The tables [problem] and [prior] of a study's file, checked by pydantic.

Every check says what to do; `restive.studies.mistakes` adds the place in the file. What is made
of a table is kept with it, since the points of a sweep share their tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal

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

from restive.arguments import MOST, MOST_ARMS
from restive.errors import ProblemError
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.finite import ArmPrior, JointPrior
from restive.learn.priors.independent import IndependentPrior, Prior, beta_prior, grid_prior
from restive.measure import zoo
from restive.problem.arm import Arm
from restive.problem.arm_tables import (
    ARM_KEYS,
    checked_num_arms,
    read_arm,
    read_arms,
    refuse_unknown_keys,
)
from restive.problem.bandit import RestlessBandit
from restive.problem.changing import ChangingBandit
from restive.problem.changing_file import ChangeReader, load_any_problem
from restive.problem.toml_text import parse_toml
from restive.studies.mistakes import PlacedError

__all__ = [
    "BetaTable",
    "Count",
    "Data",
    "DirichletTable",
    "PriorArmTable",
    "PriorBanditTable",
    "PriorTable",
    "ProblemTable",
    "TomlTable",
    "num_arms",
]

Data = dict[str, Any]
Count = Annotated[int, Field(ge=1, le=MOST)]
ArmCount = Annotated[int, Field(ge=1, le=MOST_ARMS)]
Pay = Literal["pulled", "always"]  # when arms pay their rewards, unless they say otherwise
Seen = Literal["pulled", "always"]  # when arms are seen, unless they say otherwise
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
        raise ProblemError(f"weight must be a number of at least 0, got {weight!r:.60}")
    _candidate(table)


def _candidate(table: Data, always: bool = False, seen: str | None = None) -> Arm:
    fields = {key: value for key, value in table.items() if key != "weight"}
    return read_arm(fields, "candidate", always, seen=seen)[0]


ArmTable = Annotated[Data, AfterValidator(_checked_arm)]
CandidateTable = Annotated[Data, AfterValidator(_checked_candidate)]


class TomlTable(BaseModel):
    """A table of a study: unknown keys are refused, and numbers are not guessed from text."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def __eq__(self, other: object) -> bool:
        """Whether both say the same; what was made of it meanwhile does not matter."""
        return isinstance(other, TomlTable) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]


WANTED = (
    "levels = [...], beta = ..., [prior.dirichlet], [[prior.arm]], [[prior.bandit]] or zoo = ..."
)


class ZooName(TomlTable):
    """Anything that a zoo instance can stand for."""

    zoo: str | None = None

    @field_validator("zoo")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        return None if name is None else zoo.load(name).name


class ProblemTable(ZooName):
    """The truth: arms and pulls, or the name of a zoo instance."""

    name: str | None = None
    num_pulls: Count | None = None
    states: list[str] | None = None
    pay: Pay | None = None
    seen: Seen | None = None
    arm: list[ArmTable] | None = None
    change: list[Data] | None = None
    _made: dict[int, RestlessBandit | ChangingBandit] = PrivateAttr(
        default_factory=dict
    )  # by pulls

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
        inlined = parse_toml(load_any_problem(path).to_toml())
        return {"name": data.get("name", path.stem), **inlined}

    @model_validator(mode="after")
    def _whole(self) -> ProblemTable:
        _require_one({"zoo": self.zoo, "arm": self.arm}, "zoo = ..., file = ... or [[problem.arm]]")
        if self.arm is not None and self.num_pulls is None:
            raise ProblemError("the arms need num_pulls")
        for key, says in (("pay", "what its arms pay"), ("seen", "when they are seen"),
                          ("change", "how they change")):  # fmt: skip
            if self.zoo is not None and getattr(self, key) is not None:
                raise ProblemError(f"{key} goes with arms only: a zoo instance says {says}")
        if self.arm is not None:
            self.bandit(None)
        if self.zoo is not None and zoo.load(self.zoo).bandit is None:
            raise ProblemError(
                f"the zoo's {self.zoo} has no fixed truth; use kind = 'bayesian' without [problem]"
            )
        return self

    def bandit(self, num_pulls: int | None) -> RestlessBandit | ChangingBandit:
        """Return the true bandit, with another number of pulls where one is given."""
        known = None if self.zoo is None else zoo.load(self.zoo).bandit
        pulls = num_pulls or self.num_pulls or (0 if known is None else known.num_pulls)
        if pulls not in self._made:
            if known is None:
                assert self.arm is not None
                arms = read_arms(self.arm, self.pay == "always", self.states, self.seen)
                first = RestlessBandit(arms, pulls)
                self._made[pulls] = first if self.change is None else _changed(first, self.change)
            elif pulls == known.num_pulls:
                self._made[pulls] = known
            elif isinstance(known, ChangingBandit):
                self._made[pulls] = known.with_pulls(pulls)
            else:
                self._made[pulls] = RestlessBandit(known.arms, pulls)
        return self._made[pulls]


def _changed(first: RestlessBandit, tables: list[Data]) -> ChangingBandit:
    found = ChangeReader(first, tables)
    for place, words in found.mistakes:
        raise PlacedError(place, words)
    return ChangingBandit(first, found.changes)


class BetaTable(TomlTable):
    """Channels whose probabilities have Beta laws; the rewards are the problem's unless given."""

    p01: list[float] = [1.0, 1.0]
    p11: list[float] = [1.0, 1.0]
    rewards: list[float] | None = None
    passive_rewards: list[float] | None = None
    particles: Count | None = None

    @model_validator(mode="after")
    def _whole(self) -> BetaTable:
        self.prior(None, always=False)
        return self

    def prior(self, truth: Arm | None, always: bool, seen: str = "pulled") -> DirichletArmPrior:
        """Return the prior of an arm; its rewards are the truth's unless given, else 0 and 1."""
        rewards, passive = _pay(self, truth, always, [0.0, 1.0])
        with _without("prior"), _without("beta_prior"), _without("arm"):
            found = beta_prior(
                1, self.p01, self.p11, rewards, passive, particles=self.particles, seen=seen
            )
        arm = found.arms[0]
        assert isinstance(arm, DirichletArmPrior)
        return arm


class DirichletTable(TomlTable):
    """Arms whose rows have Dirichlet laws; the rewards are the problem's unless given."""

    active: list[list[float]]
    passive: list[list[float]] | None = None
    rewards: list[float] | None = None
    passive_rewards: list[float] | None = None
    particles: Count | None = None

    @model_validator(mode="after")
    def _whole(self) -> DirichletTable:
        if self.rewards is not None:
            self.prior(None, always=False)
        else:
            self._made([0.0] * len(self.active), self.passive_rewards, "pulled")
        return self

    def prior(self, truth: Arm | None, always: bool, seen: str = "pulled") -> DirichletArmPrior:
        """Return the prior of an arm; its rewards are the truth's unless given."""
        return self._made(*_pay(self, truth, always), seen)

    def _made(
        self, rewards: list[float], passive: list[float] | None, seen: str
    ) -> DirichletArmPrior:
        with _without("prior"), _without("arm"):
            return DirichletArmPrior(
                self.active, self.passive, rewards, passive, self.particles, seen=seen
            )


class PriorArmTable(TomlTable):
    """What some arms may be, each by itself; or all alike, if pooled."""

    candidate: list[CandidateTable] | None = Field(default=None, min_length=1)
    beta: BetaTable | None = None
    dirichlet: DirichletTable | None = None
    count: ArmCount = 1
    pooled: bool = False

    @model_validator(mode="after")
    def _whole(self) -> PriorArmTable:
        given = {"candidate": self.candidate, "beta": self.beta, "dirichlet": self.dirichlet}
        _require_one(given, "[[prior.arm.candidate]], beta = ... or dirichlet = ...")
        return self

    def prior(
        self, truth: Arm | None, always: bool, seen: str = "pulled"
    ) -> ArmPrior | DirichletArmPrior:
        """Return what an arm may be whose truth is this; `always` as in `read_arm`."""
        if self.candidate is not None:
            weights = [row.get("weight", 1.0) for row in self.candidate]
            return ArmPrior([_candidate(row, always, seen) for row in self.candidate], weights)
        table = self.beta or self.dirichlet
        assert table is not None
        return table.prior(truth, always, seen)


class PriorBanditTable(TomlTable):
    """One system of a joint prior."""

    arm: list[ArmTable] = Field(min_length=1)
    weight: Weight = 1.0


class PriorTable(ZooName):
    """What is held possible: a grid, a continuous prior, a prior by arm, systems, or the zoo's."""

    levels: list[float] | None = None
    beta: BetaTable | None = None
    dirichlet: DirichletTable | None = None
    num_arms: ArmCount | None = None
    rewards: list[float] | None = None
    passive_rewards: list[float] | None = None
    pay: Pay | None = None
    seen: Seen | None = None
    arm: list[PriorArmTable] | None = None
    bandit: list[PriorBanditTable] | None = None
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
                    (at,), f"{level} is listed already, as levels[{first[level]}]; give each once"
                )
            first[level] = at
        if levels is not None:
            grid_prior(levels, 1)
        return levels

    @property
    def _always(self) -> bool:
        return self.pay == "always"

    @model_validator(mode="after")
    def _whole(self) -> PriorTable:
        given = {
            "zoo": self.zoo, "levels": self.levels, "beta": self.beta, "dirichlet": self.dirichlet,
            "arm": self.arm, "bandit": self.bandit,
        }  # fmt: skip
        _require_one(given, WANTED)
        if self.num_arms is not None and not self._same_for_all:
            raise ProblemError("num_arms goes with levels, beta or dirichlet only")
        for key in ("rewards", "passive_rewards"):
            if getattr(self, key) is not None and self.levels is None:
                raise ProblemError(f"{key} goes with levels only")
        if self.zoo is not None and self.pay is not None:
            raise ProblemError("a zoo instance says what its arms pay; remove pay")
        if self.zoo is not None and self.seen is not None:
            raise ProblemError("a zoo instance says when its arms are seen; remove seen")
        if self.rewards is not None or self.passive_rewards is not None:
            self._as_grid.prior(None, self._always)  # levels were checked already
        for at, table in enumerate(self.arm or ()):
            try:
                if table.candidate is not None:
                    table.prior(None, self._always)
            except ProblemError as error:
                raise PlacedError(("arm", at), str(error)) from None
        if self.arm is not None:
            checked_num_arms(sum(table.count for table in self.arm))
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

    def prior(self, bandit: RestlessBandit | ChangingBandit | None, num_pulls: int) -> Prior:
        """Return the prior; what is said once is for as many arms as it says, or the problem has.

        Grids and continuous priors take the rewards of the problem's arms unless they say others.
        """
        truths = () if bandit is None else bandit.arms
        # a joint prior's systems know their pulls, the others do not
        key = tuple(map(_rewards_key, truths)), num_pulls if self.bandit is not None else 0
        if key not in self._made:
            self._made[key] = self._make(truths, num_pulls)
        return self._made[key]

    def _make(self, truths: Sequence[Arm], num_pulls: int) -> Prior:
        if self.zoo is not None:
            return zoo.load(self.zoo).prior
        if self.bandit is not None:
            bandits = [
                RestlessBandit(read_arms(table.arm, self._always, seen=self.seen), num_pulls)
                for table in self.bandit
            ]
            return JointPrior(bandits, [table.weight for table in self.bandit])
        if self.arm is not None:
            tables = [table for table in self.arm for _ in range(table.count)]
            arms = _shared(tables, truths, self._always, self.seen)
            return IndependentPrior(arms, _pools(self.arm))
        count = self.num_arms or len(truths)
        if not count:
            raise PlacedError(("prior",), f"{self._same_for_all} needs num_arms")
        table = self.beta or self.dirichlet or self._as_grid
        return IndependentPrior(_shared([table] * count, truths, self._always, self.seen))

    @property
    def _as_grid(self) -> _Grid:
        return _Grid(self.levels or [], self.rewards, self.passive_rewards)


@dataclass(frozen=True)
class _Grid:
    """The candidates (p01, p11) in levels x levels."""

    levels: list[float]
    rewards: list[float] | None
    passive_rewards: list[float] | None

    def prior(self, truth: Arm | None, always: bool, seen: str = "pulled") -> ArmPrior:
        """Return the prior of an arm; its rewards are the truth's unless given, else 0 and 1."""
        rewards, passive = _pay(self, truth, always, [0.0, 1.0])
        with _without("arm"):
            arm = grid_prior(self.levels, 1, rewards, passive, seen=seen).arms[0]
        assert isinstance(arm, ArmPrior)
        return arm


def _pay(
    table: BetaTable | DirichletTable | _Grid,
    truth: Arm | None,
    always: bool,
    usual: list[float] | None = None,
) -> tuple[list[float], list[float] | None]:
    """Rewards of an arm, pulled and not: as given, else as the truth's, else the usual."""
    rewards, passive = table.rewards, table.passive_rewards
    if rewards is None and truth is not None:
        rewards = truth.rewards.tolist()
        if passive is None and truth.pays_unpulled:
            passive = truth.passive_rewards.tolist()
    if rewards is None:
        rewards = usual
    if rewards is None:
        raise ProblemError("rewards is missing: no problem says them")
    return rewards, rewards if always and passive is None else passive


def _shared(
    tables: Sequence[PriorArmTable | BetaTable | DirichletTable | _Grid], truths: Sequence[Arm],
    always: bool, seen: str | None,
) -> list[ArmPrior | DirichletArmPrior]:  # fmt: skip
    """Return the prior of each arm, one object for all that are equal.

    Arms are seen as `seen` says or, where that is None, as their truths are.
    """
    made: dict[Any, ArmPrior | DirichletArmPrior] = {}
    arms = []
    for k, table in enumerate(tables):
        truth = truths[k] if k < len(truths) else None
        key = id(table), None if truth is None else _rewards_key(truth)
        if key not in made:
            try:
                when = seen or (truth.seen if truth is not None else "pulled")
                made[key] = table.prior(truth, always, when)
            except ProblemError as error:
                raise PlacedError(("prior",), f"arm {k}: {error}") from None
        arms.append(made[key])
    return arms


def _rewards_key(arm: Arm) -> tuple[bytes, bytes, str]:
    return arm.rewards.tobytes(), arm.passive_rewards.tobytes(), arm.seen


def _pools(tables: Sequence[PriorArmTable]) -> list[range]:
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
