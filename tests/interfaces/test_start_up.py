"""The command starts fast: commands are imported when they run, and the table of commands agrees with them."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from forel.cli.app import COMMANDS, DEV, app, load_command

LARGE = {"numba", "numpy", "pyarrow", "scipy", "sklearn"}
RUN = "import sys; sys.argv[0] = 'forel'\nfrom forel.cli import main\ntry: main()\nfinally: print(*sys.modules)"


def imported(*arguments):
    done = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, arguments)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_the_collector_does_not_traverse_imported_objects_again_and_again():
    shown = "print(gc.get_freeze_count() > 1000, gc.get_threshold()[0])"
    run = f"import atexit, gc, sys; sys.argv = ['forel', '--version']\natexit.register(lambda: {shown})\n"
    run += "from forel.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "True 100000", done.stderr


@pytest.mark.parametrize(("option", "most"), [("--version", 7), ("--help", 7)])
def test_version_and_help_import_no_command(option, most):
    modules = imported(option)
    assert not {*LARGE, "rich"} & modules
    assert len([name for name in modules if name.partition(".")[0] == "forel"]) <= most


@pytest.mark.parametrize("command", COMMANDS | DEV)
def test_help_of_a_command_imports_no_large_package_and_no_other_command(command):
    modules = imported(*(["dev"] if command in DEV else []), command, "--help")
    assert not LARGE & modules
    others = {f"forel.cli.{name}" for name in (*COMMANDS, "dev")} - {
        f"forel.cli.{'dev' if command in DEV else command}"
    }
    assert not others & modules


def test_training_and_predicting_import_no_package_that_they_do_not_use(tmp_path):
    rows, model = tmp_path / "rows.vw", tmp_path / "m.forel"
    rows.write_text("1 |f a b\n-1 |f b c\n" * 20)
    unused = {"numba", "numpy.ma", "pyarrow", "rich", "scipy", "sklearn", "forel.data.column_tasks"}
    for command in (("train", rows, "--alpha", 0.1, "--json", "--model"), ("predict", rows, "--model")):
        imported(*command, model)  # compiles, if another test has not
        assert not unused & imported(*command, model)
    assert "rich._emoji_codes" not in imported("train", rows, "--alpha", 0.1, "--model", model)
    assert "scipy" not in imported("train", rows, "--alpha", 0.1, "--certificate", "--model", model)


@pytest.mark.parametrize(("given", "used"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_commands_start_no_threads_of_blas_unless_told_to(given, used):
    others = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    run = "import atexit, os, sys; sys.argv = ['forel', '--version']\n"
    run += "atexit.register(lambda: print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules))\n"
    run += "from forel.cli import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", run], capture_output=True, text=True, timeout=120, env={**others, **given}
    )
    assert done.stdout.splitlines()[-1] == f"{used} False", done.stderr


def test_the_table_has_the_first_line_of_each_help_text_and_fits_a_terminal():
    for arguments, commands in ((["--help"], COMMANDS), (["dev", "--help"], DEV)):
        lines = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(app, arguments).stdout.splitlines()
        width = max(map(len, commands))
        for name, text in commands.items():
            assert load_command(name).help.splitlines()[0] == text
            assert f"  {name:<{width}}  {text}" in lines
        assert max(map(len, lines)) <= 80


def test_commands_and_their_options_are_completed():
    def completed(words):
        environment = {**os.environ, "_FOREL_COMPLETE": "complete_bash", "COMP_WORDS": words}
        number = str(len(words.split(" ")) - 1)
        command = [sys.executable, "-m", "forel"]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, env={**environment, "COMP_CWORD": number}
        ).stdout.split()

    assert completed("forel pre") == ["predict"]
    assert {*COMMANDS, "dev"} == set(completed("forel "))
    assert set(DEV) == set(completed("forel dev "))
    assert completed("forel train --certi") == ["--certificate"]
    assert completed("forel explain --rep") == []


def test_a_command_that_does_not_exist_has_a_suggestion():
    done = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(app, ["evalute"])
    assert done.exit_code == 2
    assert "Did you mean 'evaluate'?" in done.output


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("train",), "name files, or - for standard input"),
        (
            ("train", "-", "--bits", "4", "--alpha", "1", "--quiet", "--format", "vw"),
            "reading rows from this terminal until Ctrl-D",
        ),
        (("predict", "--model", "m"), "name files, or - for standard input"),
    ],
)
def test_a_terminal_is_told_that_rows_are_read_from_it(arguments, expected):
    main, terminal = os.openpty()
    command = [sys.executable, "-m", "forel", *arguments]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        os.close(terminal)
        os.write(main, b"1 |a x\n" + 4 * b"\x04")  # as a reader may ask again at the end
        _, errors = child.communicate(timeout=120)
    os.close(main)
    assert expected in errors
    assert child.returncode == (0 if "-" in arguments else 2)
