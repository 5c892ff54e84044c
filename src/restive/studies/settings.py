"""A study's file at one point of its sweep, checked by pydantic: everything that is run.

Every check says what to do; `restive.studies.mistakes` adds the place in the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from restive.arguments import MOST
from restive.errors import ProblemError
from restive.learn.learners import learner
from restive.learn.learners.base import Learner
from restive.learn.priors.independent import Prior, is_continuous
from restive.measure import zoo
from restive.measure.regret import NO_EXACT, recorded_times
from restive.plan.policies.registry import mapping_name
from restive.problem.arm_tables import unknown_keys
from restive.problem.bandit import RestlessBandit
from restive.problem.changing import ChangingBandit
from restive.studies.mistakes import PlacedError
from restive.studies.toml_tables import (
    BetaTable,
    Count,
    Data,
    DirichletTable,
    PriorArmTable,
    PriorBanditTable,
    PriorTable,
    ProblemTable,
    TomlTable,
)

__all__ = ["CaseSettings", "Data", "StudyTable", "beside_instance", "canonical_json", "keys_at"]

FROM_INSTANCE = ("kind", "problem", "prior")
# what an instance of the user's own has beside its name, problem and prior
OWN_SETTINGS = ("horizon", "num_pulls", "mixing_time", "max_elapsed", "baseline", "doubling")
OWN_KEYS = ("name", "problem", "prior", *OWN_SETTINGS)

Times = Annotated[  # told apart beforehand, so that a mistake is not one of each
    Annotated[int, Tag("int")] | Annotated[list[int], Tag("list[int]")],
    Discriminator(lambda times: "list[int]" if isinstance(times, list) else "int"),
]


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


class CaseSettings(TomlTable):
    """Everything that decides the numbers of a case.

    `instance` names a zoo instance, which then says kind, problem, prior and, unless given, the
    horizon. It may also be a table, an instance of the user's own: name, prior and, where the truth
    is fixed, problem, with a horizon and other settings that differ between instances.
    """

    instance: Any = None
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
    problem: ProblemTable | None = None
    prior: PriorTable

    @model_validator(mode="before")
    @classmethod
    def _instance_taken(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "instance" not in data:
            return data
        if isinstance(data["instance"], dict):
            return _own_instance_taken(data, data["instance"])
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
    def _whole(self) -> CaseSettings:
        if self.kind == "frequentist" and self.problem is None:
            raise PlacedError(("kind",), "a frequentist study needs the truth, in [problem]")
        if self.kind == "bayesian" and self.problem is not None:
            raise PlacedError(
                ("problem",),
                "a Bayesian study draws the truth from the prior; remove [problem] or set "
                "kind = 'frequentist'",
            )
        bandit, prior, _ = self.systems()
        if is_continuous(prior):
            self._check_continuous()
        if isinstance(bandit, ChangingBandit):
            self._check_changing()
        return self

    def _check_changing(self) -> None:
        if self.posterior:
            raise PlacedError(
                ("posterior",), "is for a truth that stays; these arms change: leave posterior out"
            )
        if self.baseline == "exact":
            raise PlacedError(("baseline",), NO_EXACT.removeprefix("baseline "))

    def _check_continuous(self) -> None:
        if self.posterior:
            raise PlacedError(
                ("posterior",),
                "under a continuous prior the truth has no weight that could be recorded; leave "
                "posterior out",
            )
        if self.kind == "bayesian" and self.baseline == "exact":
            raise PlacedError(
                ("baseline",),
                "a continuous prior draws another system in each replication, and J of each would "
                "have to be solved; use baseline = 'coupled'",
            )

    def systems(self) -> tuple[RestlessBandit | ChangingBandit | None, Prior, int]:
        """Return the true bandit where it is not drawn, the prior and the number of pulls."""
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
            prior = self.prior.prior(bandit, num_pulls)
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
            return self.problem.bandit(self.num_pulls).num_arms
        return said

    def learner(self) -> Learner:
        """Return the first learner; a case has but one."""
        entry = self.learners[0]
        return learner(**entry) if isinstance(entry, dict) else learner(entry)

    def only(self, entry: str | Data, mapping: str) -> CaseSettings:
        """Return the settings of one case: with this learner and mapping alone."""
        fields = {name: getattr(self, name) for name in CaseSettings.model_fields}
        return CaseSettings.model_construct(
            **fields | {"learners": [entry], "policy_mappings": [mapping]}
        )

    def shortened(self, steps: int) -> CaseSettings:
        """Return the settings of so many steps, for a trial; an instance says them no more."""
        own = self.instance
        if isinstance(own, dict):
            own = {key: value for key, value in own.items() if key != "horizon"}
        changes = {"instance": own, "horizon": steps, "times": [steps], "posterior": False}
        return self.model_copy(update=changes)

    def data(self) -> Data:
        """Return the settings as plain data that reads back equal."""
        derived = set(FROM_INSTANCE) if self.instance is not None else set()
        data = self.model_dump(exclude_none=True, exclude=derived)
        if isinstance(self.instance, dict):  # its files taken in
            dumped = self.model_dump(exclude_none=True, include={"problem", "prior"})
            data["instance"] = self.instance | dumped
            for key in OWN_SETTINGS:  # at another point of a sweep they are another's
                if key in self.instance:
                    del data[key]
        return data

    def to_json(self) -> str:
        """Return the settings as text, the same for equal settings."""
        return canonical_json(self.data())


class StudyTable(CaseSettings):
    """A study's file, at one point of its sweep."""

    title: str | None = None
    replications: Count = 1000


def _own_instance_taken(data: Data, own: Data) -> Data:
    """Return settings with what an instance of the user's own says."""
    for key, words in unknown_keys(own, OWN_KEYS):
        raise PlacedError(("instance", key), words)
    if not isinstance(own.get("name"), str) or "prior" not in own:
        raise PlacedError(("instance",), "an instance of your own needs a name and a prior")
    own = {key: value for key, value in own.items() if key not in OWN_SETTINGS or key not in data}
    given: Data = {key: own[key] for key in OWN_SETTINGS if key in own} | data
    given |= {"instance": own, "kind": "bayesian", "prior": own["prior"]}
    if "problem" in own:
        given |= {"kind": "frequentist", "problem": own["problem"]}
    return given


def beside_instance(data: Data) -> Iterator[PlacedError]:
    """Keys that an instance says, and that are given all the same."""
    for key in FROM_INSTANCE:
        if "instance" in data and key in data:
            yield PlacedError((key,), f"give instance or {key}, not both")


def canonical_json(data: Any) -> str:
    """Return JSON that is the same for equal data."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def keys_at(place: tuple[int | str, ...]) -> list[str]:
    """Keys that the table at a place may have."""
    tables: dict[str, type[TomlTable]] = {
        "problem": ProblemTable, "prior": PriorTable, "arm": PriorArmTable,
        "bandit": PriorBanditTable, "beta": BetaTable, "dirichlet": DirichletTable,
    }  # fmt: skip
    names = [part for part in place if isinstance(part, str)]
    model = tables[names[-1]] if names else StudyTable
    files = {StudyTable: ["sweep"], ProblemTable: ["file"]}
    return [*model.model_fields, *files.get(model, [])]
