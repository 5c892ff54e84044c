"""Restless bandits whose arms are seen only when pulled: planning and learning.

The public names: what most users call stands here, and the rest in `types` (what calls return),
`errors`, `theory` (the paper's bounds, and closed forms) and `registry` (own learners and
mappings, by name). Each is imported when it is first used, so that `import restive` is quick and
numba is loaded only once a number is needed.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from restive import errors
    from restive.errors import RestiveError
    from restive.learn.evidence import Evidence
    from restive.learn.make import TSDE, make_learner
    from restive.learn.priors.continuous import DirichletArmPrior
    from restive.learn.priors.finite import ArmPrior, JointPrior
    from restive.learn.priors.independent import IndependentPrior, beta_prior, grid_prior
    from restive.learn.snapshots import restore
    from restive.live.agent import LiveAgent
    from restive.live.clock import Clock
    from restive.logs.fitting import fit_log, write_fit
    from restive.logs.log import log_of
    from restive.logs.prior_file import load_prior
    from restive.logs.reading import load_log
    from restive.logs.replay import replay_log
    from restive.measure import zoo
    from restive.measure.compare import compare
    from restive.measure.regret import bayesian_regret, frequentist_regret
    from restive.measure.simulation import simulate
    from restive.measure.world import World
    from restive.plan.evaluate import evaluate
    from restive.plan.policies.base import index_policy
    from restive.plan.policies.best_fixed import best_fixed
    from restive.plan.policies.best_index import best_index
    from restive.plan.policies.lp_priority import lp_priority
    from restive.plan.policies.myopic import myopic
    from restive.plan.policies.optimal import optimal
    from restive.plan.policies.random import random_policy
    from restive.plan.policies.round_robin import round_robin
    from restive.plan.policies.whittle import whittle, whittle_index
    from restive.plan.relaxation import relaxation_bound
    from restive.problem.arm import Arm, gilbert_elliott
    from restive.problem.bandit import RestlessBandit
    from restive.problem.beliefs import BeliefState, belief_table, mixing_time
    from restive.problem.chains import stationary
    from restive.problem.toml_file import load_problem, problem_from_toml, problem_to_toml
    from restive.studies.export import export_results
    from restive.studies.report.study_page import write_report
    from restive.studies.runner import run_study
    from restive.studies.spec import load_study
    from restive.studies.summary import load_results

    types: Any
    theory: Any
    registry: Any

__version__ = "0.1.0"

# Where the names live: those of this module under "", those of its namespaces under their names.
_HOMES: dict[str, dict[str, tuple[str, ...]]] = {
    "": {
        "errors": ("RestiveError",),
        "learn.evidence": ("Evidence",),
        "learn.make": ("TSDE", "make_learner"),
        "learn.priors.continuous": ("DirichletArmPrior",),
        "learn.priors.finite": ("ArmPrior", "JointPrior"),
        "learn.priors.independent": ("IndependentPrior", "beta_prior", "grid_prior"),
        "learn.snapshots": ("restore",),
        "live.agent": ("LiveAgent",),
        "live.clock": ("Clock",),
        "logs.fitting": ("fit_log", "write_fit"),
        "logs.prior_file": ("load_prior",),
        "logs.reading": ("load_log",),
        "logs.replay": ("replay_log",),
        "logs.log": ("log_of",),
        "measure.compare": ("compare",),
        "measure.regret": ("bayesian_regret", "frequentist_regret"),
        "measure.simulation": ("simulate",),
        "measure.world": ("World",),
        "plan.evaluate": ("evaluate",),
        "plan.policies.base": ("index_policy",),
        "plan.policies.best_fixed": ("best_fixed",),
        "plan.policies.best_index": ("best_index",),
        "plan.policies.lp_priority": ("lp_priority",),
        "plan.policies.myopic": ("myopic",),
        "plan.policies.optimal": ("optimal",),
        "plan.policies.random": ("random_policy",),
        "plan.policies.round_robin": ("round_robin",),
        "plan.policies.whittle": ("whittle", "whittle_index"),
        "plan.relaxation": ("relaxation_bound",),
        "problem.arm": ("Arm", "gilbert_elliott"),
        "problem.bandit": ("RestlessBandit",),
        "problem.beliefs": ("BeliefState", "belief_table", "mixing_time"),
        "problem.chains": ("stationary",),
        "problem.toml_file": ("load_problem", "problem_from_toml", "problem_to_toml"),
        "studies.export": ("export_results",),
        "studies.report.study_page": ("write_report",),
        "studies.runner": ("run_study",),
        "studies.spec": ("load_study",),
        "studies.summary": ("load_results",),
    },
    "types": {
        "learn.agent": ("Agent",),
        "learn.agent_view": ("Episode",),
        "learn.explain": ("Explanation",),
        "learn.posterior": ("ArmPosterior",),
        "live.answers": ("Decision", "Receipt"),
        "logs.fitted": ("FittedLog",),
        "logs.prior_file": ("PriorFile",),
        "logs.replay": ("Replay",),
        "logs.log": ("Log",),
        "measure.regret": ("RegretCurve",),
        "measure.simulation": ("Trajectory",),
        "plan.evaluate": ("Value",),
        "plan.policies.base": ("IndexPolicy",),
        "plan.policies.best_index": ("BestIndexPolicy",),
        "plan.policies.optimal": ("OptimalPolicy",),
        "plan.policies.whittle": ("WhittleIndex",),
        "problem.reduction": ("Reduction",),
        "studies.spec": ("Study",),
        "studies.summary": ("CaseSummary", "Results"),
    },
    "theory": {
        "measure.theory": (
            "bounds_for",
            "decompose_regret",
            "discounted_spans",
            "episode_bound",
            "regret_bound",
        ),
        "plan.policies.whittle": ("channel_whittle_index",),
        "problem.reduction": ("reduce_arm",),
    },
    "registry": {
        "learn.learners": ("LEARNERS", "register_learner", "unregister_learner"),
        "plan.policies.registry": ("policy_mapping", "register_mapping", "unregister_mapping"),
    },
}
_MODULES = {"errors": "restive.errors", "zoo": "restive.measure.zoo"}
_SAID = {
    "types": "What calls return.",
    "theory": "The paper's bounds and its regret decomposition, as numbers; closed forms.",
    "registry": "Learners and policy mappings by name, and how to enter your own.",
}


class _Names(ModuleType):
    """A module of names that are imported when they are first used."""

    def __init__(self, name: str, said: str, homes: dict[str, tuple[str, ...]]) -> None:
        super().__init__(name, said)
        self.__all__ = sorted(each for names in homes.values() for each in names)
        self._home_of = {each: home for home, names in homes.items() for each in names}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._home_of:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"restive.{self._home_of[name]}"), name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return list(self.__all__)


_NAMES = {
    space: _Names(f"restive.{space}".rstrip("."), _SAID.get(space, ""), homes)
    for space, homes in _HOMES.items()
}

__all__ = ["__version__", *sorted([*_NAMES[""].__all__, *_MODULES, *_SAID])]  # noqa: PLE0604 (all names are text)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _SAID:
        return _NAMES[name]
    value = getattr(_NAMES[""], name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
