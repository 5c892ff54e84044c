"""From a log to a decision: fit it, check it, replay other policies on it."""

from restive.logs.checks import Check
from restive.logs.files import write_fit
from restive.logs.fit import FittedLog
from restive.logs.fitting import fit_log
from restive.logs.prior_file import PriorFile, load_prior
from restive.logs.replay import Replay, replay_log

__all__ = [
    "Check",
    "FittedLog",
    "PriorFile",
    "Replay",
    "fit_log",
    "load_prior",
    "replay_log",
    "write_fit",
]
