"""Studies: specs as TOML, a ledger that survives a kill, and where the work runs."""

from restive.experiment.executors import TLS
from restive.experiment.ledger import Ledger
from restive.experiment.runner import run_study
from restive.experiment.spec import Case, Study, load_study, study_from_toml
from restive.experiment.summary import CaseSummary, Results, load_results

__all__ = [
    "TLS",
    "Case",
    "CaseSummary",
    "Ledger",
    "Results",
    "Study",
    "load_results",
    "load_study",
    "run_study",
    "study_from_toml",
]
