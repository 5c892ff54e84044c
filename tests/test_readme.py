"""What the README and the examples say is executed."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

import restive as rs
from restive.studies.spec import study_from_toml
from test_documentation import in_this_process

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_readme_shows_the_two_commands_first() -> None:
    first = blocks("console")[0].splitlines()
    assert [line.split("#")[0].strip() for line in first] == ["make reproduce", "make test"]


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_readme_python_runs(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks("python")[number], f"README block {number}", "exec"), {"rs": rs})
    assert capsys.readouterr().out


def test_readme_toml_is_a_problem() -> None:
    bandit = rs.RestlessBandit.from_toml(blocks("toml")[0])
    assert bandit.num_arms == 4
    assert bandit.num_pulls == 2


def test_readme_study_is_one() -> None:
    (text,) = re.findall(r'```toml title="study"\n(.*?)```', README, flags=re.DOTALL)
    assert len(study_from_toml(text).cases) == 4


NOT_RUN = (
    "restive --",
    "warm-up",
    "5000",
    "--scheduler",
)  # what needs a cluster, minutes, or shows help


def test_readme_commands_run_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (study,) = re.findall(r'```toml title="study"\n(.*?)```', README, flags=re.DOTALL)
    Path("study.toml").write_text(study, encoding="utf-8")
    lines = [
        command.strip()
        for block in blocks("sh")
        for line in block.splitlines()
        if line.startswith("restive ") and not any(part in line for part in NOT_RUN)
        for command in line.split("#")[0].split(";")
    ]
    assert len(lines) == 9
    for line in lines:
        status, out, errors = in_this_process(shlex.split(line)[1:])
        assert status == 0, f"{line}: {errors}"
        assert out, line


def test_readme_names_are_public() -> None:
    table = README[README.index("## What you can call") : README.index("Every mistake is one")]
    named = set(re.findall(r"`(\w+)`", table))
    assert named == set(rs.__all__) - {"__version__", "RestiveError"}


def test_readme_table_of_values_is_what_evaluate_gives() -> None:
    bandit = rs.load_problem(ROOT / "examples" / "paper_frequentist.toml")
    rows = re.findall(r"^(\w+) +(\d\.\d{6}) +([\d.]+)%", README, flags=re.MULTILINE)
    assert len(rows) == 6
    bound = rs.relaxation_bound(bandit)
    for name, average_reward, share in rows:
        value = rs.evaluate(bandit, rs.registry.policy_mapping(name)(bandit)).average_reward
        assert f"{value:.6f}" == average_reward
        assert f"{100 * value / bound:.2f}" == share


def rows_of(text: str) -> list[list[str]]:
    """Cells of the rows of a page's tables."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def first_number(cell: str) -> float:
    return float(cell.split(maxsplit=1)[0].replace(",", ""))


COMPARISON = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return a section of the comparison, the part before any by the name of the page."""
    (found,) = [part for part in re.split("^#+ ", COMPARISON, flags=re.M) if part.startswith(title)]
    return found


def compared_regrets() -> dict[str, dict[str, str]]:
    """Cells of the comparison's regrets, by learner and instance."""
    (_, *names), _, *rows = rows_of(section("Regret"))
    return {learner: dict(zip(names, cells, strict=True)) for learner, *cells in rows}


def test_differences_of_the_comparison_are_those_of_its_regrets() -> None:
    regrets = compared_regrets()
    (_, *names), _, *rows = rows_of(section("Against TSDE").split("T = 2,000:")[0])
    checked = 0
    for learner, *cells in rows:
        for name, cell in zip(names, cells, strict=True):
            if cell == "refused: too large":
                assert regrets[learner][name] == cell
                continue
            gap = first_number(regrets[learner][name]) - first_number(regrets["TSDE"][name])
            assert first_number(cell) == pytest.approx(gap, abs=1.6 if gap > 50 else 1.1)
            shown, signs = cell.rsplit(maxsplit=1)
            assert re.fullmatch("[+·−]{3}", signs)
            difference, half_width = (float(x.replace(",", "")) for x in shown.split(" ± "))
            if abs(difference) != half_width:  # as far as can be told from what is shown
                assert (abs(difference) > half_width) == (signs[0] != "·")
            checked += 1
    assert checked == 9 * 10


def test_words_of_the_comparison_are_those_of_its_signs() -> None:
    text = section("Against TSDE")
    later, sooner = text.split("T = 2,000:")
    behind = []
    for horizon, part in (("2,000", sooner), ("10,000", later)):
        (_, *names), _, *rows = rows_of(part)
        for learner, *cells in rows:
            signs = [cell.rsplit(maxsplit=1)[1] for cell in cells if cell != "refused: too large"]
            always = sum(found == "+++" for found in signs)
            words = f"{always} of {len(signs)} instances at T = {horizon}"
            (line,) = [line for line in text.splitlines() if line.startswith(f"- **{learner}**")]
            assert words in line
            behind += [name for name, cell in zip(names, cells, strict=True) if "−" in cell[-3:]]
    assert ("does any learner lose less" in text) == (not behind)
    for name in behind:
        assert name in text.split("TSDE loses more than")[1].split("\n")[0]


def test_bounds_of_the_comparison_are_exact_and_its_two_regrets_of_tsde_agree() -> None:
    regret_of = compared_regrets()["TSDE"]
    rows = rows_of(section("Against the bound"))[2:]
    assert [row[0] for row in rows] == list(regret_of)
    for name, bound, short, against, _draws, _doubling in rows:
        (instance,) = [
            known for known in rs.zoo.names() if known.removeprefix("satellite-") == name
        ]
        bandit = rs.zoo.load(instance).bandit
        assert bandit is not None
        assert bound == f"{rs.relaxation_bound(bandit):.6f}"
        if "±" not in short:  # solved, not measured
            value = rs.evaluate(bandit, rs.whittle(bandit))
            assert short == f"{10_000 * (rs.relaxation_bound(bandit) - value.average_reward):,.1f}"
        rounding = 0.16 if "." in against else 1.6  # of three numbers
        total = first_number(regret_of[name]) + first_number(short)
        assert first_number(against) == pytest.approx(total, abs=rounding)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda p: p.name)
def test_examples_are_problems(path: Path) -> None:
    assert rs.load_problem(path).num_arms >= 1


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "studies").glob("*.toml")))
def test_example_studies_run(path: Path, tmp_path: Path) -> None:
    study = replace(rs.load_study(path), replications=2)
    rs.run_study(study, tmp_path / "out")
    assert len(rs.load_results(tmp_path / "out")) == len(study.cases) >= 2


def test_the_first_lines_of_a_log_are_those_of_the_example() -> None:
    page = (ROOT / "docs" / "how-to" / "fit-a-log.md").read_text()
    (shown,) = re.findall(r"```text\n(week_of,.*?)```", page, flags=re.DOTALL)
    assert (ROOT / "examples" / "logs" / "outreach.csv").read_text().startswith(shown)
