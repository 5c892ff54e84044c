"""The study behind `restive compare`: learners on instances, like any other study.

An instance is one of the zoo's, a problem of the user's own, whose arms then have a grid as prior,
or each point of a study's sweep. What a study says of learners, mappings, replications and the seed
holds for the comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from restive.arguments import suggestion
from restive.errors import ProblemError
from restive.learn.learner_state import require_sees
from restive.learn.learner_text import learner_from_text
from restive.learn.learners import LEARNERS, describe, learner, learner_of
from restive.measure import zoo
from restive.measure.compare import LEVELS, has_grid
from restive.plan.policies.registry import mapping_name
from restive.problem.arm import Arm
from restive.problem.bandit import RestlessBandit
from restive.problem.changing import ChangingBandit, first_phase
from restive.problem.changing_file import load_any_problem
from restive.problem.toml_text import parse_toml, read_text
from restive.studies.runner import require_sound
from restive.studies.settings import OWN_SETTINGS, CaseSettings, Data
from restive.studies.spec import Study, load_study, study_from_data
from restive.studies.work import prepared

__all__ = ["HORIZON", "comparison_study"]

HORIZON = 2000  # of a problem file, which says none
REPLICATIONS = 200
SAYING = ("learners", "policy_mappings", "replications", "seed")  # keys of a study that are kept


def comparison_study(
    instances: Sequence[str],
    learners: Sequence[str] | None = None,
    policy_mapping: str | None = None,
    horizon: int | None = None,
    replications: int | None = None,
    seed: int | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Study:
    """Return the study of some learners on some instances.

    Parameters
    ----------
    instances
        Names of zoo instances, and paths of problem files and studies. What else is not given here
        is what these studies say, where they do.
    learners
        Names of learners; else all that can play every instance.
    policy_mapping
        What learners with a posterior play, and what regret is measured against; else "whittle".
    horizon
        Steps; by default each instance's own.
    replications, seed
        Of every learner and instance; else 200 and 0.
    tell
        Called with a line for each study that says something.
    """
    given: Data = {
        "learners": None if learners is None else [_learner(name) for name in learners],
        "policy_mappings": None if policy_mapping is None else [mapping_name(policy_mapping)],
        "replications": replications,
        "seed": seed,
    }
    given = {key: value for key, value in given.items() if value is not None}
    found, horizons, said = list[str | Data](), set[int | None](), dict[str, Data]()
    for name in instances:
        points, own_words = _instances(name)
        said[name] = {key: value for key, value in own_words.items() if key not in given}
        for instance, own in points:
            found.append(instance)
            horizons.add(own)
    settings: Data = {"policy_mappings": ["whittle"], "replications": REPLICATIONS, "seed": 0}
    settings |= _agreed(said) | given
    for name, words in said.items():
        if words:
            tell(f"as {name} says: {_in_a_line(words)}; options of this command override that")
    if horizon is None and len(horizons) > 1:
        raise ProblemError(
            "a study's horizon on an instance of the zoo is not that of the others: say one for "
            "all, horizon = 2000"
        )
    horizon = next(iter(horizons)) if horizon is None else horizon
    names = [each if isinstance(each, str) else str(each["name"]) for each in found]

    def study(chosen: Sequence[str | Data]) -> Study:
        who = f"{len(chosen)} learners" if len(chosen) > 1 else describe(learner_of(chosen[0]))
        data = settings | {
            "title": f"{who} on {', '.join(names)}",
            "learners": list(chosen),
            "sweep": {"instance": found},
        }
        if horizon is not None:
            data["horizon"] = horizon
        return study_from_data(data)

    if "learners" in settings:
        chosen = settings["learners"]
        for each in chosen:
            _require_sees(each, study(["tsde"]))
        return study(chosen)
    alone = study(["tsde"])
    require_sound(alone)  # what is wrong for every learner is reported once
    return study([name for name in LEARNERS if _sees(name, alone)])


def _require_sees(chosen: str | Data, study: Study) -> None:
    """Raise where a learner is for arms that are seen otherwise, and name those that are not."""
    for case in study.cases:
        task = prepared(case.settings.to_json())[1]
        try:
            require_sees(learner_of(chosen), task)
        except ProblemError as error:
            fitting = [name for name in LEARNERS if _sees(name, study)]
            raise ProblemError(f"{error}; those that fit: {', '.join(fitting)}") from None


def _sees(name: str, study: Study) -> bool:
    """Whether a learner is for arms that are seen as those of all cases are."""
    for case in study.cases:
        try:
            require_sees(learner(name), prepared(case.settings.to_json())[1])
        except ProblemError:
            return False
    return True


def _learner(text: str) -> str | Data:
    """Return a learner as a study has it: its name, or a table with its options."""
    table = learner_from_text(text)
    found = learner_of(table)  # which tells what is wrong with it
    return table | {"name": found.name} if len(table) > 1 else found.name


def _agreed(said: dict[str, Data]) -> Data:
    """Return what studies say, unless one says this and another that."""
    agreed: Data = {}
    for words in said.values():
        for key, value in words.items():
            if agreed.setdefault(key, value) != value:
                option = "--policy-mapping" if key == "policy_mappings" else f"--{key}"
                raise ProblemError(
                    f"{' and '.join(name for name in said if key in said[name])} have different "
                    f"{key}: say those of the comparison with {option}"
                )
    return agreed


def _in_a_line(said: Data) -> str:
    """Write keys of a study with their values, for a person."""
    words = []
    for key, value in said.items():
        each = [describe(learner_of(name)) for name in value] if key == "learners" else value
        text = ", ".join(each) if isinstance(each, list) else f"{each:,}"
        words.append(f"{key.replace('_', ' ')} {text}")
    return "; ".join(words)


def _instances(name: str) -> tuple[list[tuple[str | Data, int | None]], Data]:
    """Return what a name stands for: a zoo instance, or what a file of the user's holds.

    Beside each is the horizon that it has from elsewhere, if it has; beside all what a study says
    of the whole comparison.
    """
    if name in zoo.names():
        return [(name, None)], {}
    path = Path(name)
    if path.suffix != ".toml" and not path.exists():
        raise ProblemError(
            f"unknown instance {name!r}; {suggestion(name, zoo.names())}; or name a TOML file, of "
            "a problem or a study"
        )
    written = parse_toml(read_text(path))
    if "arm" in written:
        return [(_of_problem(path.stem, load_any_problem(path)), None)], {}
    study = load_study(path)
    checked = {**study.data, "replications": study.replications}
    said = {key: checked[key] for key in SAYING if key in written}
    return list(_of_study(path.stem, study)), said


def _of_problem(name: str, bandit: RestlessBandit | ChangingBandit) -> Data:
    """Return a problem as an instance: learners know the rewards, and what they hold possible.

    That is `default_prior`, but that arms that are always seen among others have any law.
    """
    grid = has_grid(first_phase(bandit))
    tables = [
        {**_possible(arms[0], grid), "count": len(arms)}
        for arms in (list(run) for _, run in groupby(bandit.arms, key=_what_is_known))
    ]
    problem = parse_toml(bandit.to_toml())
    return {"name": name, "horizon": HORIZON, "problem": problem, "prior": {"arm": tables}}


def _what_is_known(arm: Arm) -> tuple[Any, ...]:
    return arm.rewards.tobytes(), arm.states, arm.seen


def _possible(arm: Arm, grid: bool) -> Data:
    """What an arm may be: a channel of the grid, or anything."""
    if arm.always_seen or not grid:
        ones = [[1.0] * arm.num_states] * arm.num_states
        return {"dirichlet": {"active": ones, "passive": ones}}
    return {"candidate": _candidates(arm)}


def _candidates(arm: Arm) -> list[Data]:
    known: Data = {"rewards": arm.rewards.tolist()}
    if arm.states is not None:
        known["states"] = list(arm.states)
    return [{"p01": p01, "p11": p11, **known} for p01 in LEVELS for p11 in LEVELS]


def _of_study(name: str, study: Study) -> Iterator[tuple[str | Data, int | None]]:
    """Yield the points of a study's sweep."""
    points: dict[str, CaseSettings] = {case.point: case.settings for case in study.cases}
    for point, settings in points.items():
        if isinstance(settings.instance, str):
            own = zoo.load(settings.instance).horizon
            yield settings.instance, None if settings.horizon == own else settings.horizon
            continue
        data = settings.model_dump(exclude_none=True, include={"problem", "prior", *OWN_SETTINGS})
        yield {"name": f"{name}, {point}" if point else name, **data}, None
