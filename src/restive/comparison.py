"""The study behind `restive compare`: learners on zoo instances, like any other study."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from restive import zoo
from restive.agents.learners import LEARNERS, learner
from restive.errors import ProblemError, TooLargeError
from restive.experiment.running import require_sound
from restive.experiment.spec import Study, study_from_data

__all__ = ["comparison_study"]


def comparison_study(
    instances: Sequence[str],
    learners: Sequence[str] = (),
    policy_mapping: str = "whittle",
    horizon: int | None = None,
    replications: int = 200,
    seed: int = 0,
    tell: Callable[[str], None] = lambda line: None,
) -> Study:
    """Return the study of some learners on some instances.

    Parameters
    ----------
    instances
        Names of zoo instances.
    learners
        Names of learners; by default all that can play every instance.
    policy_mapping
        What learners with a posterior play, and what regret is measured against.
    horizon
        Steps; by default each instance's own.
    replications, seed
        Of every learner and instance.
    tell
        Called with a line for each learner that is left out.
    """
    names = [zoo.load(name).name for name in instances]
    named = [learner(name).name for name in learners] or list(LEARNERS)

    def study(chosen: Sequence[str]) -> Study:
        data = {
            "title": f"{len(chosen)} learners on {', '.join(names)}",
            "learners": list(chosen),
            "policy_mappings": [policy_mapping],
            "replications": replications,
            "seed": seed,
            "sweep": {"instance": names},
        }
        if horizon is not None:
            data["horizon"] = horizon
        return study_from_data(data)

    if learners:
        return study(named)
    fitting = []
    for name in named:
        try:
            require_sound(study([name]))
        except (ProblemError, TooLargeError) as error:
            tell(f"{name} is left out: {error}")
        else:
            fitting.append(name)
    return study(fitting)
