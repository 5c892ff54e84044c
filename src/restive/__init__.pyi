"""The public names: what most users call.

This file is read by type checkers and by `__init__.py`, which imports each name from where it says
here when it is first used.
"""

from restive import errors as errors
from restive import policies as policies
from restive import registry as registry
from restive import theory as theory
from restive import types as types
from restive import zoo as zoo
from restive.errors import RestiveError as RestiveError
from restive.learn.evidence import Evidence as Evidence
from restive.learn.make import TSDE as TSDE
from restive.learn.make import make_learner as make_learner
from restive.learn.priors.continuous import DirichletArmPrior as DirichletArmPrior
from restive.learn.priors.finite import ArmPrior as ArmPrior
from restive.learn.priors.finite import JointPrior as JointPrior
from restive.learn.priors.independent import IndependentPrior as IndependentPrior
from restive.learn.priors.independent import beta_prior as beta_prior
from restive.learn.priors.independent import dirichlet_prior as dirichlet_prior
from restive.learn.priors.independent import grid_prior as grid_prior
from restive.learn.priors.spread import spread_prior as spread_prior
from restive.learn.snapshots import restore as restore
from restive.live.agent import LiveAgent as LiveAgent
from restive.live.clock import Clock as Clock
from restive.logs.fitting import fit_log as fit_log
from restive.logs.fitting import write_fit as write_fit
from restive.logs.prior_file import load_prior as load_prior
from restive.logs.reading import load_log as load_log
from restive.logs.replay import replay_log as replay_log
from restive.measure.batch import BatchWorld as BatchWorld
from restive.measure.compare import compare as compare
from restive.measure.regret import bayesian_regret as bayesian_regret
from restive.measure.regret import frequentist_regret as frequentist_regret
from restive.measure.simulation import simulate as simulate
from restive.measure.world import World as World
from restive.plan.evaluate import evaluate as evaluate
from restive.plan.policies.myopic import myopic as myopic
from restive.plan.policies.optimal import optimal as optimal
from restive.plan.policies.whittle import whittle as whittle
from restive.plan.relaxation import relaxation_bound as relaxation_bound
from restive.problem.arm import Arm as Arm
from restive.problem.arm import gilbert_elliott as gilbert_elliott
from restive.problem.bandit import RestlessBandit as RestlessBandit
from restive.problem.beliefs import BeliefState as BeliefState
from restive.problem.problem_file import load_problem as load_problem
from restive.studies.export import export_results as export_results
from restive.studies.report.study_page import write_report as write_report
from restive.studies.runner import run_study as run_study
from restive.studies.spec import load_study as load_study
from restive.studies.summary import load_results as load_results

__version__: str
__all__: list[str]
