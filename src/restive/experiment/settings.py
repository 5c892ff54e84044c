"""The tables of a study's file, checked by pydantic: the prior, the problem, and what is run.

Every check says what to do; `restive.experiment.mistakes` adds the place in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from restive import zoo
from restive.agents.learners import Learner, learner
from restive.arguments import MOST
from restive.errors import ProblemError
from restive.experiment.mistakes import PlacedError
from restive.policies import mapping_name
from restive.prior import ArmPrior, IndependentPrior, JointPrior, Prior, grid_prior
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
from restive.regret import recorded_times

__all__ = ["Data", "Settings", "StudyTable", "beside_instance", "canonical_json", "keys_at"]

FROM_INSTANCE = ("kind", "problem", "prior")

Data = dict[str, Any]
Count = Annotated[int, Field(ge=1, le=MOST)]
Times = Annotated[  # told apart beforehand, so that a mistake is not one of each
    Annotated[int, Tag("int")] | Annotated[list[int], Tag("list[int]")],
    Discriminator(lambda times: "list[int]" if isinstance(times, list) else "int"),
]
ArmCount = Annotated[int, Field(ge=1, le=MOST_ARMS)]
Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@contextmanager
def _without(place: str) -> Iterator[None]:
    """Let messages not begin with a place: where in the file it is, is told anyway."""
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


def _checked_learner(value: Any) -> str | Data:
    """Return a learner as it is written: its name, or a table with its name and options."""
    if isinstance(value, dict):
        options = {key: option for key, option in value.items() if key != "name"}
        if "name" not in value:
            raise ProblemError("a learner's table needs a name")
        found = learner(value["name"], **options)
        return {"name": found.name, **options} if options else found.name
    return learner(value).name


LearnerEntry = Annotated[Any, AfterValidator(_checked_learner)]
ArmTable = Annotated[Data, AfterValidator(_checked_arm)]
CandidateTable = Annotated[Data, AfterValidator(_checked_candidate)]


class Table(BaseModel):
    """A table of a study: unknown keys are refused, and numbers are not guessed from text."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def __eq__(self, other: object) -> bool:
        """Whether both say the same; what was made of it meanwhile does not matter."""
        return isinstance(other, Table) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]


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


class PriorArm(Table):
    """What some arms may be, each by itself."""

    candidate: list[CandidateTable] = Field(min_length=1)
    count: ArmCount = 1
    _prior: ArmPrior = PrivateAttr()

    @model_validator(mode="after")
    def _whole(self) -> PriorArm:
        weights = [row.get("weight", 1.0) for row in self.candidate]
        self._prior = ArmPrior([_candidate(row) for row in self.candidate], weights)
        return self

    def prior(self) -> ArmPrior:
        """Return what each of these arms may be."""
        return self._prior


class PriorBandit(Table):
    """One system of a joint prior."""

    arm: list[ArmTable] = Field(min_length=1)
    weight: Weight = 1.0


class PriorTable(ZooName):
    """What is held possible: a grid, candidates by arm, whole systems, or a zoo instance's."""

    levels: list[float] | None = None
    num_arms: ArmCount | None = None
    arm: list[PriorArm] | None = None
    bandit: list[PriorBandit] | None = None
    _made: dict[tuple[int | None, int], Prior] = PrivateAttr(default_factory=dict)

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
        given = {"zoo": self.zoo, "levels": self.levels, "arm": self.arm, "bandit": self.bandit}
        _require_one(given, "levels = [...], [[prior.arm]], [[prior.bandit]] or zoo = ...")
        if self.num_arms is not None and self.levels is None:
            raise ProblemError("num_arms goes with levels only")
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
            return _num_arms(self.bandit[0].arm)
        return self.num_arms

    def prior(self, num_arms: int | None, num_pulls: int) -> Prior:
        """Return the prior; a grid has as many arms as it says, else as many as the problem."""
        # a joint prior's systems know their pulls, the others do not
        key = num_arms, num_pulls if self.bandit is not None else 0
        if key not in self._made:
            self._made[key] = self._make(num_arms, num_pulls)
        return self._made[key]

    def _make(self, num_arms: int | None, num_pulls: int) -> Prior:
        if self.zoo is not None:
            return zoo.load(self.zoo).prior
        if self.levels is not None:
            if self.num_arms is None and num_arms is None:
                raise PlacedError(("prior",), "num_arms is missing beside levels")
            return grid_prior(self.levels, self.num_arms or num_arms or 0)
        if self.arm is not None:
            arms: list[ArmPrior] = []
            for table in self.arm:
                arms += [table.prior()] * table.count
            return IndependentPrior(arms)
        assert self.bandit is not None
        bandits = [RestlessBandit(read_arms(table.arm), num_pulls) for table in self.bandit]
        return JointPrior(bandits, [table.weight for table in self.bandit])


class Settings(Table):
    """Everything that decides the numbers of a case.

    `instance` names a zoo instance, which then says kind, problem, prior and, unless given, the
    horizon.
    """

    instance: str | None = None
    kind: Literal["bayesian", "frequentist"]
    learners: list[LearnerEntry] = Field(default=["tsde"], min_length=1)
    policy_mappings: list[str] = Field(default=["whittle"], min_length=1)
    horizon: Count
    seed: int = Field(default=0, ge=0, lt=2**63)
    times: Times = 50
    num_pulls: Count | None = None
    baseline: Literal["auto", "coupled", "exact"] = "auto"
    doubling: bool = False
    posterior: bool = False
    mixing_time: Count | None = None
    max_elapsed: Count | None = None
    problem: Problem | None = None
    prior: PriorTable

    @model_validator(mode="before")
    @classmethod
    def _instance_taken(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "instance" not in data:
            return data
        try:
            found = zoo.load(data["instance"])
        except ProblemError as error:
            raise PlacedError(("instance",), str(error)) from None
        given: Data = {"horizon": found.horizon} | data
        given |= {"instance": found.name, "kind": "bayesian", "prior": {"zoo": found.name}}
        if found.bandit is not None:
            given |= {"kind": "frequentist", "problem": {"zoo": found.name}}
        return given

    @field_validator("problem", "prior", mode="wrap")
    @classmethod
    def _checked_once(
        cls, table: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> Any:
        """Check a table that points of a sweep share when it first comes."""
        known: dict[int, tuple[Any, Any]] = (info.context or {}).get("checked", {})
        if id(table) not in known:
            try:
                found = check(table)
            except ValidationError as error:
                found = error
            known[id(table)] = table, found  # with the table, so that its id stays its own
        found = known[id(table)][1]
        if isinstance(found, ValidationError):
            raise found
        return found

    @field_validator("learners")
    @classmethod
    def _different(cls, entries: list[str | Data]) -> list[str | Data]:
        written = [canonical_json(entry) for entry in entries]
        if len(set(written)) < len(written):
            raise ProblemError("a learner is named twice")
        return entries

    @field_validator("policy_mappings")
    @classmethod
    def _registered(cls, names: list[str]) -> list[str]:
        known = [mapping_name(name) for name in names]
        if len(set(known)) < len(known):
            raise ProblemError(f"a mapping is named twice: {', '.join(names)}")
        return known

    @field_validator("times")
    @classmethod
    def _rising(cls, times: int | list[int], info: ValidationInfo) -> int | list[int]:
        if "horizon" in info.data:
            recorded_times(times, info.data["horizon"])
        elif isinstance(times, int):  # the horizon is wrong, but what it says is not needed
            recorded_times(times, MOST)
        elif not times or times[0] < 1 or any(b <= a for a, b in pairwise(times)):
            raise ProblemError(f"must rise from at least 1 to the horizon, got {times!r:.60}")
        return times

    @model_validator(mode="after")
    def _whole(self) -> Settings:
        if self.kind == "frequentist" and self.problem is None:
            raise PlacedError(("kind",), "a frequentist study needs the truth, in [problem]")
        if self.kind == "bayesian" and self.problem is not None:
            raise PlacedError(
                ("problem",),
                "a Bayesian study draws the truth from the prior; remove [problem] or set "
                "kind = 'frequentist'",
            )
        self.systems()
        return self

    def systems(self) -> tuple[RestlessBandit | None, Prior, int]:
        """Return the true bandit where it is fixed, the prior and the number of pulls."""
        try:
            bandit = None if self.problem is None else self.problem.bandit(self.num_pulls)
        except ProblemError as error:
            place = ("problem",) if self.num_pulls is None else ("num_pulls",)
            raise PlacedError(place, str(error)) from None
        num_pulls = self.num_pulls
        if bandit is not None:
            num_pulls = bandit.num_pulls
        elif num_pulls is None and self.prior.zoo is not None:
            num_pulls = zoo.load(self.prior.zoo).num_pulls
        if num_pulls is None:
            raise PlacedError(("num_pulls",), "is missing")
        try:
            prior = self.prior.prior(None if bandit is None else bandit.num_arms, num_pulls)
        except PlacedError:
            raise
        except ProblemError as error:  # by itself it is sound: the systems have fewer arms
            raise PlacedError(("num_pulls",), str(error)) from None
        if bandit is not None and bandit.num_arms != prior.num_arms:
            raise PlacedError(
                ("prior",), f"the problem has {bandit.num_arms} arms, the prior {prior.num_arms}"
            )
        if num_pulls > prior.num_arms:
            raise PlacedError(
                ("num_pulls",), f"is {num_pulls}, but there are {prior.num_arms} arms"
            )
        return bandit, prior, num_pulls

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        said = self.prior.num_arms_said
        if said is None:
            assert self.problem is not None
            assert self.problem.arm is not None
            return _num_arms(self.problem.arm)
        return said

    def learner(self) -> Learner:
        """Return the first learner; a case has but one."""
        entry = self.learners[0]
        return learner(**entry) if isinstance(entry, dict) else learner(entry)

    def only(self, entry: str | Data, mapping: str) -> Settings:
        """Return the settings of one case: with this learner and mapping alone."""
        fields = {name: getattr(self, name) for name in Settings.model_fields}
        return Settings.model_construct(
            **fields | {"learners": [entry], "policy_mappings": [mapping]}
        )

    def data(self) -> Data:
        """Return the settings as plain data that reads back equal."""
        derived = set(FROM_INSTANCE) if self.instance is not None else set()
        return self.model_dump(exclude_none=True, exclude=derived)

    def to_json(self) -> str:
        """Return the settings as text, the same for equal settings."""
        return canonical_json(self.data())


class StudyTable(Settings):
    """A study's file, at one point of its sweep."""

    title: str | None = None
    replications: Count = 1000


def beside_instance(data: Data) -> Iterator[PlacedError]:
    """Keys that an instance says, and that are given all the same."""
    for key in FROM_INSTANCE:
        if "instance" in data and key in data:
            yield PlacedError((key,), f"give instance or {key}, not both")


def canonical_json(data: Any) -> str:
    """Return JSON that is the same for equal data."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _num_arms(tables: list[Data]) -> int:
    return sum(table.get("count", 1) for table in tables)


def _require_one(given: Mapping[str, Any], wanted: str) -> None:
    names = [name for name, value in given.items() if value is not None]
    if not names:
        raise ProblemError(f"needs {wanted}")
    if len(names) > 1:
        raise ProblemError(f"give {names[0]} or {names[1]}, not both")


def keys_at(place: tuple[int | str, ...]) -> list[str]:
    """Keys that the table at a place may have."""
    tables: dict[str, type[Table]] = {
        "problem": Problem, "prior": PriorTable, "arm": PriorArm, "bandit": PriorBandit,
    }  # fmt: skip
    names = [part for part in place if isinstance(part, str)]
    model = tables[names[-1]] if names else StudyTable
    files = {StudyTable: ["sweep"], Problem: ["file"]}
    return [*model.model_fields, *files.get(model, [])]
