"""The study behind `restive compare`: learners on zoo instances, like any other study."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from restive import zoo
from restive.agents.learners import LEARNERS, learner
from restive.errors import TooLargeError
from restive.experiment.runner import require_sound
from restive.experiment.spec import Study, study_from_data
from restive.policies import mapping_name

__all__ = ["comparison_study"]


def comparison_study(
    instances: Sequence[str],
    learners: Sequence[str] | None = None,
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
    mapping = mapping_name(policy_mapping)

    def study(chosen: Sequence[str]) -> Study:
        who = f"{len(chosen)} learners" if len(chosen) > 1 else chosen[0]
        data = {
            "title": f"{who} on {', '.join(names)}",
            "learners": list(chosen),
            "policy_mappings": [mapping],
            "replications": replications,
            "seed": seed,
            "sweep": {"instance": names},
        }
        if horizon is not None:
            data["horizon"] = horizon
        return study_from_data(data)

    if learners is not None:
        return study([learner(name).name for name in learners])
    require_sound(study(["tsde"]))  # what is wrong for every learner is reported once
    fitting = []
    for name in LEARNERS:
        try:
            require_sound(study([name]))
        except TooLargeError as error:
            tell(f"{name} is left out: {error}")
        else:
            fitting.append(name)
    return study(fitting)
