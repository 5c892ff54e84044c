"""What the library says in Python, the command line says in flags."""

import pytest

from restive.cli import main
from restive.cli.fit import fit
from restive.cli.plan import plan
from restive.cli.speech import flags_of, spoken

LOG = "time,who,what\n2026-01-01,a,low\n2026-01-02,a,high\n"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("say how long a step is, as step = '1d' or '1h'", "as --step 1d or '1h'"),
        ("with states = ['bad', 'good']", "with --states bad,good"),
        ("cut it with state_from = '... < ...'", 'cut it with --state-from "... < ..."'),
        ("fit with controlled = True (--controlled), which", "fit with --controlled, which"),
        ("leave them out with skip_bad (--skip-bad):", "leave them out with --skip-bad:"),
        ("say so with passive_rewards (--pay always)", "say so with --pay always"),
        ("num_pulls must be between 1 and", "--pulls must be between 1 and"),
        ("same_step must be one of", "--same-step must be one of"),
        ("state = a column of states, or", "--state COLUMN, or"),
        ("an arm's state is a column of states", "an arm's state is a column of states"),  # words
    ],
)
def test_arguments_become_flags(message, said):
    assert said in spoken(message, flags_of(fit))


def test_only_flags_that_the_command_has():
    message = "raise max_states, lower max_elapsed, or give max_elapsed = 10000; num_pulls must be"
    assert spoken(message, flags_of(plan)) == (
        "raise --max-states, lower --max-elapsed, or give --max-elapsed 10000; num_pulls must be"
    )
    assert spoken(message, []) == message


def refused(monkeypatch, capsys, *words):
    """Run a command as the shell does; what it says on stderr."""
    monkeypatch.setattr("sys.argv", ["restive", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_fit_collects_all_complaints_and_lists_the_columns(tmp_path, monkeypatch, capsys):
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    said = refused(monkeypatch, capsys, "fit", path)
    assert said == (
        f"restive: {path}: say which column is which: --time (when), --arm (which arm), --state or "
        "--state-from (what was seen); there are time, who, what\n"
    )
    said = refused(
        monkeypatch, capsys, "fit", path, "--time", "tme", "--arm", "wo", "--state", "what",
        "--step", "1x", "--same-step", "first",
    )  # fmt: skip
    lines = said.splitlines()
    assert lines[0] == f"restive: {path}: 4 mistakes"
    assert lines[1].startswith("  --step must be a number or a length of time")
    assert lines[2].startswith("  --same-step must be ")
    assert lines[3:] == [
        "  no column 'tme' for time; did you mean 'time'?",
        "  no column 'wo' for arm; did you mean 'who'?",
        "  its columns are time, who, what",
    ]
    said = refused(
        monkeypatch, capsys, "fit", path, "--time", "time", "--arm", "who", "--state", "what"
    )
    assert "--step 1d" in said
    assert "--states bad,good" in said
    assert "step = " not in said
