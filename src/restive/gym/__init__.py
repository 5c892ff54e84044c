"""A Gymnasium environment: restless bandits for whoever learns by reinforcement learning.

Importing it registers `restive/Restless-v0`, for `gymnasium.make` and `gymnasium.make_vec`. It may
import every room but the command line, and nobody imports it. Start with `environment`; `vector` is
the same for many copies at once, `forms` what is seen and how arms are named, `problems` what may
be played, `learner` the way of a trained policy into `compare`.
"""

from __future__ import annotations

from restive.errors import RestiveError

try:
    import gymnasium
except ImportError as error:
    raise RestiveError(f"an environment needs {error.name}: pip install 'restive[gym]'") from None

from restive.gym.environment import RestlessEnv
from restive.gym.learner import learner
from restive.gym.vector import RestlessVectorEnv

__all__ = ["ENV_ID", "RestlessEnv", "RestlessVectorEnv", "learner"]

ENV_ID = "restive/Restless-v0"

if ENV_ID not in gymnasium.registry:  # imported anew, it would warn
    gymnasium.register(
        ENV_ID,
        entry_point="restive.gym.environment:RestlessEnv",
        vector_entry_point="restive.gym.vector:RestlessVectorEnv",
        max_episode_steps=1000,
    )
