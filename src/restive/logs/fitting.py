"""`fit_log`: fit, check and foretell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike

from numpy.typing import ArrayLike

from restive.arguments import checked_seed
from restive.errors import AssumptionError, ProblemError
from restive.logs.checks import Check, check_log
from restive.logs.fit import AnyArmPrior, FittedLog, fit_arms
from restive.logs.held_out import HeldOut, held_out
from restive.sightings import Log

__all__ = ["CheckedLog", "fit_log"]

Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False)
class CheckedLog(FittedLog):
    """A fitted log with the checks it passed or failed, and how well it was foretold."""

    checks: tuple[Check, ...] = ()
    held_out: HeldOut | None = None

    def check(self, name: str) -> Check:
        """Return the check of this name."""
        for check in self.checks:
            if check.name == name:
                return check
        raise ProblemError(
            f"no check {name!r}; there are {', '.join(check.name for check in self.checks)}"
        )

    def write(self, folder: str | PathLike[str], num_pulls: int | None = None) -> list[str]:
        """Write problem, prior, arms and a page into a folder; see `restive fit`."""
        from restive.logs.files import write_fit

        return write_fit(self, folder, num_pulls)


def fit_log(
    log: Log,
    *,
    prior: AnyArmPrior | Mapping[str, AnyArmPrior] | None = None,
    rewards: ArrayLike | None = None,
    controlled: bool = False,
    checks: bool = True,
    seed: int = 0,
    progress: Progress = lambda what, share: None,
) -> CheckedLog:
    """Fit a log: what each arm is like, where it was last seen, and whether chains describe it.

    Parameters
    ----------
    log
        From `load_log` or `log_of`.
    prior
        What an arm may be: an `ArmPrior` or anything else with `given(evidence)`, for all arms or
        by kind. By default it is estimated, kind by kind, from the log itself.
    rewards
        Reward [S] of each state; by default from 0, the worst, to 1 in equal steps.
    controlled
        Whether a pulled arm moves by another chain than one that is not pulled. Then only sightings
        of pulled arms are used. By default both move alike, and all sightings are used.
    checks
        Whether to check the log and to foretell its later part.
    seed
        Names the luck of the checks.
    progress
        Called with what is being done and the share of it that is done.
    """
    if not isinstance(log, Log):
        raise ProblemError(f"fit_log needs a log, from load_log or log_of, got {log!r:.60}")
    if not isinstance(controlled, bool):
        raise ProblemError(f"controlled must be True or False, got {controlled!r:.60}")
    seed = checked_seed(seed)
    fitted = fit_arms(log, prior, rewards, controlled, progress=progress)
    found: tuple[Check, ...] = ()
    foretold = None
    if checks:
        found = check_log(fitted, seed, progress=lambda share: progress("checking", share))
        _refuse_unlike_pulls(found)
        progress("foretelling", 0.0)
        foretold = held_out(log, prior, rewards, controlled)
    own = {name: getattr(fitted, name) for name in FittedLog.__dataclass_fields__}
    return CheckedLog(**own, checks=found, held_out=foretold)


def _refuse_unlike_pulls(checks: tuple[Check, ...]) -> None:
    """Sightings of arms that were not pulled count only where pulled and unpulled arms move alike."""
    for check in checks:
        if check.name == "pulls" and check.verdict == "fails":
            raise AssumptionError(
                f"pulled and unpulled arms do not move alike ({check.finding}, p <= {check.p:.3f}), "
                "so sightings of arms that were not pulled cannot be used: fit with controlled = "
                "True (--controlled), which uses those of pulled arms only"
            )
