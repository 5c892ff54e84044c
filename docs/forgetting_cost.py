"""What one needless forgetting costs: the world stays as it was, and everything is forgotten.

    python docs/forgetting_cost.py

Sixty people of two kinds, twelve calls a week, two years. After the first year all that was seen
of everybody is forgotten, for nothing; chance is the same in both runs of a world.
"""

import numpy as np

import restive as rs
from restive.learn.relearning import relearnt

WORLDS, WEEKS, YEAR, PEOPLE, CALLS = 100, 104, 52, 60, 12
LEARNERS = (
    ("mean_index", {"learn_kinds": "epochs"}),
    ("tsde", {}),
)


def prior():
    """Return what is known at first: the same of everybody, by kind."""
    base = rs.spread_prior(1, passive_rewards=(0, 1), points=16, controlled=True).arms[0]
    kinds = [base.with_weights(base.weights) for _ in range(2)]
    return rs.IndependentPrior([kinds[k % 2] for k in range(PEOPLE)])


def world(rng, known):
    """Return everybody's chances [people, pulled, state] of the good state in the next week.

    A kind is a few of the candidates, so that there is something to learn of it.
    """
    candidates = known.arms[0].candidates
    own = [rng.choice(len(candidates), 6, p=known.arms[0].weights) for _ in range(2)]
    arms = [candidates[rng.choice(own[k % 2])] for k in range(PEOPLE)]
    return np.array([[arm.passive[:, 1], arm.active[:, 1]] for arm in arms])


def earned(known, chances, luck, name, options, *, forgets):
    """Play two years; return the good weeks of the second."""
    agent = rs.make_learner(name, known, CALLS, "whittle", seed=1, **options)
    states, good = (luck[-1] < 0.5).astype(int), 0
    for week in range(WEEKS):
        if forgets and week == YEAR:
            agent = relearnt(agent, range(PEOPLE), [])
        called = agent.select()
        agent.observe(states[called])
        good += states.sum() if week >= YEAR else 0
        pulled = np.zeros(PEOPLE, dtype=int)
        pulled[called] = 1
        states = (luck[week] < chances[np.arange(PEOPLE), pulled, states]).astype(int)
    return good


def main():
    """Print the cost, a line for each learner."""
    known = prior()
    for name, options in LEARNERS:
        kept, lost = [], []
        for number in range(WORLDS):
            rng = np.random.default_rng(number)
            chances, luck = world(rng, known), rng.random((WEEKS + 1, PEOPLE))
            for forgets, found in ((False, kept), (True, lost)):
                found.append(earned(known, chances, luck, name, options, forgets=forgets))
        cost = (np.array(kept) - np.array(lost)) / np.mean(kept)
        error = cost.std(ddof=1) / np.sqrt(WORLDS)
        print(
            f"{name}: {np.mean(kept):,.0f} good weeks in the year after; forgetting cost "
            f"{cost.mean():.2%} of them (standard error {error:.2%})"
        )


if __name__ == "__main__":
    main()
