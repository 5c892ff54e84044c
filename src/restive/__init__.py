"""Restless bandits whose arms are seen only when pulled: planning and learning.

The public names. Each is imported when it is first used, so that `import restive` is quick and
numba is loaded only once a number is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from restive import zoo
    from restive.agents import (
        LEARNERS,
        TSDE,
        Agent,
        Episode,
        Explanation,
        make_learner,
        register_learner,
        restore,
        unregister_learner,
    )
    from restive.arm_posterior import ArmPosterior
    from restive.belief import BeliefState, belief_table, mixing_time
    from restive.chains import stationary
    from restive.errors import (
        AssumptionError,
        BusyError,
        ConflictError,
        DiskFullError,
        ProblemError,
        RestiveError,
        StoreError,
        TooLargeError,
    )
    from restive.evidence import Evidence
    from restive.experiment import CaseSummary, Results, Study, load_results, load_study, run_study
    from restive.experiment.export import export_results
    from restive.live import Clock, Decision, LiveAgent, Receipt
    from restive.log_file import LogError, load_log
    from restive.logs import (
        FittedLog,
        PriorFile,
        Replay,
        fit_log,
        load_prior,
        replay_log,
        write_fit,
    )
    from restive.policies import (
        BestIndexPolicy,
        IndexPolicy,
        OptimalPolicy,
        WhittleIndex,
        best_fixed,
        best_index,
        channel_whittle_index,
        index_policy,
        lp_priority,
        myopic,
        optimal,
        policy_mapping,
        register_mapping,
        unregister_mapping,
        whittle,
        whittle_index,
    )
    from restive.policies.random import random_policy
    from restive.policies.round_robin import round_robin
    from restive.prior import (
        ArmPrior,
        DirichletArmPrior,
        IndependentPrior,
        JointPrior,
        beta_prior,
        grid_prior,
    )
    from restive.problem import Arm, RestlessBandit, gilbert_elliott
    from restive.problem_file import load_problem, problem_from_toml, problem_to_toml
    from restive.reduction import Reduction, reduce_arm
    from restive.regret import RegretCurve, bayesian_regret, frequentist_regret
    from restive.relaxation import relaxation_bound
    from restive.report import write_report
    from restive.side_by_side import compare
    from restive.sightings import Log, log_of
    from restive.simulation import Trajectory, simulate
    from restive.theory import (
        bounds_for,
        decompose_regret,
        discounted_spans,
        episode_bound,
        regret_bound,
    )
    from restive.world import World
    from restive.worth import Value, evaluate

__version__ = "0.1.0"

_HOMES = {
    "agents": (
        "LEARNERS",
        "TSDE",
        "Agent",
        "Episode",
        "Explanation",
        "make_learner",
        "register_learner",
        "restore",
        "unregister_learner",
    ),
    "arm_posterior": ("ArmPosterior",),
    "belief": ("BeliefState", "belief_table", "mixing_time"),
    "chains": ("stationary",),
    "errors": (
        "AssumptionError",
        "BusyError",
        "ConflictError",
        "DiskFullError",
        "ProblemError",
        "RestiveError",
        "StoreError",
        "TooLargeError",
    ),
    "evidence": ("Evidence",),
    "experiment": ("CaseSummary", "Results", "Study", "load_results", "load_study", "run_study"),
    "experiment.export": ("export_results",),
    "live": ("Clock", "Decision", "LiveAgent", "Receipt"),
    "log_file": ("LogError", "load_log"),
    "logs": (
        "FittedLog",
        "PriorFile",
        "Replay",
        "fit_log",
        "load_prior",
        "replay_log",
        "write_fit",
    ),
    "policies": (
        "BestIndexPolicy",
        "IndexPolicy",
        "OptimalPolicy",
        "WhittleIndex",
        "best_fixed",
        "best_index",
        "channel_whittle_index",
        "index_policy",
        "lp_priority",
        "myopic",
        "optimal",
        "policy_mapping",
        "register_mapping",
        "unregister_mapping",
        "whittle",
        "whittle_index",
    ),
    "policies.random": ("random_policy",),
    "policies.round_robin": ("round_robin",),
    "prior": (
        "ArmPrior",
        "DirichletArmPrior",
        "IndependentPrior",
        "JointPrior",
        "beta_prior",
        "grid_prior",
    ),
    "problem": ("Arm", "RestlessBandit", "gilbert_elliott"),
    "problem_file": ("load_problem", "problem_from_toml", "problem_to_toml"),
    "reduction": ("Reduction", "reduce_arm"),
    "regret": ("RegretCurve", "bayesian_regret", "frequentist_regret"),
    "relaxation": ("relaxation_bound",),
    "report": ("write_report",),
    "side_by_side": ("compare",),
    "sightings": ("Log", "log_of"),
    "simulation": ("Trajectory", "simulate"),
    "theory": (
        "bounds_for",
        "decompose_regret",
        "discounted_spans",
        "episode_bound",
        "regret_bound",
    ),
    "world": ("World",),
    "worth": ("Value", "evaluate"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

_MODULES = ("zoo",)

__all__ = ["__version__", *sorted([*_HOME_OF, *_MODULES])]  # noqa: PLE0604 (all names are text)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"restive.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'restive' has no attribute {name!r}")
    value = getattr(import_module(f"restive.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
