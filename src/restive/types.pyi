"""What calls return, and worlds that change."""

from restive.learn.advice import LearnerAdvice as LearnerAdvice
from restive.learn.agent import Agent as Agent
from restive.learn.agent_view import Episode as Episode
from restive.learn.explain import Explanation as Explanation
from restive.learn.posterior import ArmPosterior as ArmPosterior
from restive.live.told.answers import Decision as Decision
from restive.live.told.answers import Receipt as Receipt
from restive.live.told.explaining import Why as Why
from restive.logs.decision import FitDecision as FitDecision
from restive.logs.fitted import FittedLog as FittedLog
from restive.logs.forgetting import ForgettingAdvice as ForgettingAdvice
from restive.logs.log import Log as Log
from restive.logs.prior_file import PriorFile as PriorFile
from restive.logs.replay import Replay as Replay
from restive.measure.compare import ComparedLearners as ComparedLearners
from restive.measure.regret import RegretCurve as RegretCurve
from restive.measure.simulation import Trajectory as Trajectory
from restive.measure.theory import Bounds as Bounds
from restive.measure.theory import Decomposition as Decomposition
from restive.plan.evaluate import Value as Value
from restive.plan.policies.base import IndexPolicy as IndexPolicy
from restive.plan.policies.best_index import BestIndexPolicy as BestIndexPolicy
from restive.plan.policies.optimal import OptimalPolicy as OptimalPolicy
from restive.plan.policies.random import RandomPolicy as RandomPolicy
from restive.plan.policies.registry import PolicyMapping as PolicyMapping
from restive.plan.policies.round_robin import RoundRobinPolicy as RoundRobinPolicy
from restive.plan.policies.whittle import WhittleIndex as WhittleIndex
from restive.problem.changing import ChangingBandit as ChangingBandit
from restive.problem.reduction import Reduction as Reduction
from restive.studies.ledger import Ledger as Ledger
from restive.studies.spec import Study as Study
from restive.studies.summary import CaseSummary as CaseSummary
from restive.studies.summary import Results as Results

__all__: list[str]
