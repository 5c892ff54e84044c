"""The claims of Section 6: data made by hand for which each verdict is known beforehand."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from restive.paper import claims
from restive.paper.claims import check_claims
from restive.paper.runs import paper_study
from restive.studies.runner import run_study
from restive.studies.summary import Curve, Slope, load_results

MAPPINGS = ("best_fixed", "myopic", "whittle")
NAMES = {"best_fixed": "best fixed arms", "myopic": "myopic", "whittle": "Whittle index"}
COUNT = 400
SPREAD = np.linspace(-0.5, 0.5, COUNT)  # mean 0, so that shifts are exact
NOISE = np.where(np.arange(COUNT) % 2, 1.0, -1.0)
QUANTILE = stats.t.ppf(0.975, COUNT - 1)
WIDTH = QUANTILE / np.sqrt(COUNT)  # half-width of an interval, in standard deviations


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Return real summaries of both studies, two replications each, to be written over."""
    folder = tmp_path_factory.mktemp("claims")
    found = []
    for name in ("bayesian", "frequentist"):
        run_study(replace(paper_study(name), replications=2), folder / name)
        found.append(load_results(folder / name))
    return found


@pytest.fixture
def bayesian(measured):
    """Return summaries, by mapping, for which every claim about drawn systems holds."""
    levels = {"best_fixed": 2.067, "myopic": 2.172, "whittle": 2.185}
    return {
        found.case.mapping: replace(
            found,
            replications=COUNT,
            truth_rewards=levels[found.case.mapping] + SPREAD,
            slope=Slope(0.33, 0.30, 0.36, 200, 2000),
        )
        for found in measured[0]
    }


@pytest.fixture
def frequentist(measured):
    """Return summaries, by mapping, for which every claim about the one system holds."""
    found = {one.case.mapping: one for one in measured[1]}
    for mapping, one in found.items():
        size = len(one.times)
        target = one.truth_reward[0]
        average = Curve(np.full(size, 0.997 * target), np.full(size, 0.0005 * target), COUNT)
        found[mapping] = replace(one, replications=COUNT, average_reward=average)
    return found | {"whittle": with_weights(found["whittle"], rising)}


def rising(times):
    return 1 - np.exp(-times / 1500)


def with_weights(found, curve, stderr=0.005, arm=None):
    """Give the arms (or one arm) a curve of posterior weights."""
    mean, error = found.truth_weights.mean.copy(), found.truth_weights.stderr.copy()
    arms = slice(None) if arm is None else slice(arm, arm + 1)
    mean[:, arms] = curve(found.times.astype(float))[:, None]
    error[:, arms] = stderr
    return replace(found, truth_weights=Curve(mean, error, found.replications))


def checked(bayesian, frequentist):
    """Return the claims by what they say."""
    found = check_claims(list(bayesian.values()), list(frequentist.values()))
    by_claim = {claim.claim: claim for claim in found}
    assert len(by_claim) == len(found)
    return by_claim


def test_there_is_a_claim_for_every_statement_of_section_six(bayesian, frequentist):
    found = checked(bayesian, frequentist)
    expected = {
        *(f"E J of the mapping '{name}'" for name in NAMES.values()),
        "E J: 'myopic' above 'best fixed arms'",
        "E J: 'Whittle index' above 'myopic'",
        *(f"regret grows sub-linearly ('{name}')" for name in NAMES.values()),
        *(f"regret grows no faster than the square root of time ('{name}')"
          for name in NAMES.values()),
        *(f"J of the mapping '{name}'" for name in NAMES.values()),
        *(f"reward per step comes within 1% of J ('{name}')" for name in NAMES.values()),
        *(f"weight of arm {k}'s truth rises towards one ('Whittle index')" for k in range(4)),
    }  # fmt: skip
    assert set(found) == expected
    assert {claim.verdict for claim in found.values()} == {"holds"}
    assert all(claim.place and claim.paper and claim.ours for claim in found.values())


def test_the_figures_of_the_paper_are_those_that_it_prints(bayesian, frequentist):
    found = checked(bayesian, frequentist)
    printed = {"best_fixed": (2.05, 1.00), "myopic": (2.16, 1.09), "whittle": (2.17, 1.12)}
    for mapping, (drawn, fixed) in printed.items():
        claim = found[f"E J of the mapping '{NAMES[mapping]}'"]
        stderr = (2 + SPREAD).std(ddof=1) / 10  # of the paper's 100 draws
        assert claim.paper == f"{drawn:.2f} (± {QUANTILE * stderr:.2f} with 100 draws)"
        assert found[f"J of the mapping '{NAMES[mapping]}'"].paper == f"{fixed:.2f}"
    assert found["E J: 'myopic' above 'best fixed arms'"].paper == "by 0.11"
    assert found["E J: 'Whittle index' above 'myopic'"].paper == "by 0.01"


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize(
    ("steps", "verdict"),
    [(0, "holds"), (0.9, "holds"), (-0.9, "holds"), (1.3, "fails"), (-1.3, "fails")],
)
def test_a_mean_over_drawn_systems_is_compared_with_both_errors(
    bayesian, frequentist, mapping, steps, verdict
):
    """`steps` counts half-widths of the difference, ours and the paper's taken together."""
    deviation = SPREAD.std(ddof=1)
    width = QUANTILE * deviation * np.sqrt(1 / COUNT + 1 / 100)
    paper = {"best_fixed": 2.05, "myopic": 2.16, "whittle": 2.17}[mapping]
    shifted = replace(bayesian[mapping], truth_rewards=paper + steps * width + SPREAD)
    claim = checked(bayesian | {mapping: shifted}, frequentist)[
        f"E J of the mapping '{NAMES[mapping]}'"
    ]
    assert claim.verdict == verdict
    value, half = claim.ours.split(" ± ")
    assert float(value) == pytest.approx(paper + steps * width, abs=5e-4)
    assert float(half) == pytest.approx(WIDTH * deviation, rel=0.05)


def test_two_drawn_systems_contradict_nothing(bayesian, frequentist):
    """Two draws that are alike by chance say next to nothing of the mean over the prior."""
    few = {
        mapping: replace(found, replications=2, truth_rewards=np.array([2.5, 2.5]) - k * 0.01)
        for k, (mapping, found) in enumerate(bayesian.items())
    }
    found = checked(few, frequentist).values()
    assert [claim.claim for claim in found if claim.verdict == "fails"] == []


def test_two_replications_of_one_system_contradict_nothing(bayesian, frequentist):
    """Two replications that are alike by chance have a small standard error and no more."""
    few = {}
    for mapping, found in frequentist.items():
        size = len(found.times)
        average = Curve(np.full(size, 0.98 * found.truth_reward[0]), np.full(size, 1e-6), 2)
        few[mapping] = replace(found, replications=2, average_reward=average)
    few["whittle"] = with_weights(few["whittle"], stuck, 1e-6)
    found = checked(bayesian, few).values()
    assert [claim.claim for claim in found if claim.verdict == "fails"] == []


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [(0.02, "holds"), (-0.02, "fails"), (0.005, "undecided"), (-0.005, "undecided")],
)
@pytest.mark.parametrize("pair", [("best_fixed", "myopic"), ("myopic", "whittle")])
def test_an_order_is_decided_by_differences_on_the_same_systems(
    bayesian, frequentist, pair, gain, verdict
):
    """The means differ by far less than the systems do: only pairing can tell."""
    worse, better = pair
    rewards = bayesian[worse].truth_rewards + gain + 0.1 * NOISE
    found = checked(
        bayesian | {better: replace(bayesian[better], truth_rewards=rewards)}, frequentist
    )
    claim = found[f"E J: '{NAMES[better]}' above '{NAMES[worse]}'"]
    assert claim.verdict == verdict
    differences = rewards - bayesian[worse].truth_rewards
    half = QUANTILE * np.std(differences, ddof=1) / np.sqrt(COUNT)
    assert claim.ours == f"by {gain:.4f} ± {half:.4f} (same systems)"
    unpaired = np.sqrt(rewards.var() + bayesian[worse].truth_rewards.var()) / np.sqrt(COUNT)
    assert abs(gain) < unpaired


@pytest.mark.parametrize(
    ("slope", "sublinear", "square_root"),
    [
        ((0.33, 0.30, 0.36), "holds", "holds"),
        ((0.48, 0.44, 0.52), "holds", "undecided"),
        ((0.52, 0.48, 0.56), "holds", "undecided"),
        ((0.60, 0.55, 0.65), "holds", "fails"),
        ((0.98, 0.90, 1.06), "undecided", "fails"),
        ((1.20, 1.10, 1.30), "fails", "fails"),
    ],
)
def test_growth_is_decided_by_the_interval_of_the_slope(
    bayesian, frequentist, slope, sublinear, square_root
):
    value, lower, upper = slope
    myopic = replace(bayesian["myopic"], slope=Slope(value, lower, upper, 200, 2000))
    found = checked(bayesian | {"myopic": myopic}, frequentist)
    first = found["regret grows sub-linearly ('myopic')"]
    second = found["regret grows no faster than the square root of time ('myopic')"]
    assert (first.verdict, second.verdict) == (sublinear, square_root)
    assert first.ours == second.ours == f"slope {value:.3f} [{lower:.3f}, {upper:.3f}]"
    others = [c.verdict for c in found.values() if "grows" in c.claim and "myopic" not in c.claim]
    assert others == ["holds"] * 4


def test_growth_without_a_fit_is_undecided_and_says_so(bayesian, frequentist):
    found = checked(bayesian | {"whittle": replace(bayesian["whittle"], slope=None)}, frequentist)
    for text in ("sub-linearly", "no faster than the square root of time"):
        claim = found[f"regret grows {text} ('Whittle index')"]
        assert claim.verdict == "undecided"
        assert claim.ours.startswith("no fit")


@pytest.mark.parametrize(
    ("off", "verdict"), [(0.0049, "holds"), (-0.0049, "holds"), (0.0051, "fails"), (-0.1, "fails")]
)
@pytest.mark.parametrize("mapping", MAPPINGS)
def test_an_exact_figure_is_compared_up_to_the_rounding_of_the_paper(
    bayesian, frequentist, mapping, off, verdict
):
    paper = {"best_fixed": 1.00, "myopic": 1.09, "whittle": 1.12}[mapping]
    other = replace(frequentist[mapping], truth_rewards=np.full(COUNT, paper + off))
    assert other.truth_method == "exact"
    claim = checked(bayesian, frequentist | {mapping: other})[
        f"J of the mapping '{NAMES[mapping]}'"
    ]
    assert claim.verdict == verdict
    assert claim.ours == f"{paper + off:.6f} (exact)"


@pytest.mark.parametrize(
    ("gap", "stderr", "verdict"),
    [
        (0.004, 0.0005, "holds"),
        (-0.004, 0.0005, "holds"),
        (0.02, 0.002, "fails"),
        (-0.02, 0.002, "fails"),  # more than J is no convergence either
        (0.012, 0.002, "undecided"),
        (0.004, 0.01, "undecided"),
        (0.004, np.nan, "undecided"),
    ],
)
def test_convergence_is_a_gap_of_at_most_one_percent(bayesian, frequentist, gap, stderr, verdict):
    found = frequentist["myopic"]
    target = found.truth_reward[0]
    size = len(found.times)
    mean = np.full(size, 2 * target)  # only the last time counts
    mean[-1] = (1 - gap) * target
    curve = Curve(mean, np.full(size, stderr * target), COUNT)
    claim = checked(bayesian, frequentist | {"myopic": replace(found, average_reward=curve)})[
        "reward per step comes within 1% of J ('myopic')"
    ]
    assert claim.verdict == verdict
    shown = claim.ours.removeprefix("J minus it: ").removesuffix("% of J").split(" ± ")
    assert float(shown[0]) == pytest.approx(100 * gap, abs=1e-2)
    if np.isfinite(stderr):
        assert float(shown[1]) == pytest.approx(196 * stderr, rel=0.05)


def falling(times):
    return np.where(times < 3000, rising(times), rising(times) - 0.2 * (times > 3000))


def stuck(times):
    return np.minimum(rising(times), 0.45)


def half_way(times):
    """What is lacking at T is just half of what was lacking at T / 10."""
    begun = times[np.searchsorted(times, times[-1] / 10)]
    return 1 - 0.8 * 0.5 ** (np.log(np.maximum(times, begun) / begun) / np.log(times[-1] / begun))


@pytest.mark.parametrize(
    ("curve", "stderr", "verdict"),
    [
        (rising, 0.005, "holds"),
        (rising, 0.0, "holds"),
        (np.ones_like, 0.0, "holds"),
        (falling, 0.005, "fails"),
        (stuck, 0.005, "fails"),
        (half_way, 0.005, "undecided"),
        (stuck, 0.2, "undecided"),
        (rising, np.nan, "undecided"),
    ],
)
@pytest.mark.parametrize("arm", [0, 3])
def test_posterior_weights_must_not_fall_and_must_come_close_to_one(
    bayesian, frequentist, arm, curve, stderr, verdict
):
    changed = with_weights(frequentist["whittle"], curve, stderr, arm)
    found = checked(bayesian, frequentist | {"whittle": changed})
    for k in range(4):
        claim = found[f"weight of arm {k}'s truth rises towards one ('Whittle index')"]
        assert claim.verdict == (verdict if k == arm else "holds")
    times = changed.times
    tenth = times[times >= 1000].min()
    weights = changed.truth_weights.mean[:, arm]
    ours = found[f"weight of arm {arm}'s truth rises towards one ('Whittle index')"].ours
    assert ours.startswith(f"{weights[times == tenth][0]:.3f} at t = {tenth:,}, ")
    assert ours.endswith(" at t = 10,000")


def test_noise_in_a_rising_curve_is_no_fall(bayesian, frequentist):
    """Neighbours that fall by two or three standard errors may do so by chance."""

    def noisy(times):
        return rising(times) - 0.06 * (np.arange(len(times)) == 60)

    def verdict(stderr):
        changed = with_weights(frequentist["whittle"], noisy, stderr, 1)
        found = checked(bayesian, frequentist | {"whittle": changed})
        return found["weight of arm 1's truth rises towards one ('Whittle index')"].verdict

    assert verdict(0.008) == "holds"
    assert verdict(0.0001) == "fails"


@pytest.mark.parametrize(
    ("value", "stderr", "text"),
    [
        (46.71234, 0.1530612, "46.71 ± 0.30"),
        (2.0670481, 0.0153, "2.067 ± 0.030"),
        (351.2, 7.7, "351 ± 15"),
        (1234567.8, 5000.0, "1,234,568 ± 9,830"),
        (-0.4, 1.85, "-0.4 ± 3.6"),
        (-0.4, 7.7, "0 ± 15"),
        (1.0, 0.0, "1.000000"),
        (3.14159, np.nan, "3.142"),
    ],
)
def test_a_number_is_told_to_two_digits_of_its_error(value, stderr, text):
    assert claims.with_error(value, stderr, COUNT) == text
