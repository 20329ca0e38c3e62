"""Options of the command line: what may be given more than once, and what may not."""

from tests.cli_survey import ADDING_UP
from tests.examples import looped

from treewright.cli import main
from treewright.cli.parser import make_parser


def options():
    """Command, option and a value for it, of all that there are."""
    (commands,) = [action.choices for action in make_parser()._actions if action.dest == "command"]
    for command, parser in commands.items():
        for action in parser._actions:
            if action.option_strings and action.dest != "help":
                name = action.option_strings[0]
                value = [] if action.nargs == 0 else [(list(action.choices or []) or ["3"])[0]]
                yield command, name, ["area=totals.csv"] if name == "--margin" else value


@looped("command, option, value", list(options()))
def test_an_option_given_twice_is_refused_unless_it_adds_up(command, option, value, capsys):
    """The last one took the place of the others in silence: totals of a margin that nobody met."""
    rest = {"fit": ["d.csv"], "predict": ["m.zip", "d.csv"], "show": ["m.zip"]}.get(command, [])
    rest += [] if command != "fit" or option == "--target" else ["--target", "y"]
    rest += [] if command != "predict" or option == "--out" else ["--out", "p.csv"]
    if option in ADDING_UP:
        args = make_parser().parse_args([command, *rest, option, *value, option, *value])
        assert len(getattr(args, "settings" if option == "--set" else option[2:])) == 2
        return
    assert main([command, *rest, option, *value, option, *value]) == 2
    captured = capsys.readouterr()
    assert f"{option} is given twice" in captured.out + captured.err
