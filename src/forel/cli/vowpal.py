"""Options in Vowpal Wabbit's spelling: its squared loss is the squared error, and its constant is a feature."""

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import typer

__all__ = ["UNSUPPORTED", "suggest_command", "translate_name", "translate_vw_options"]

# Options of VW under another name here.
NAMES = {
    "bit_precision": "bits",
    "cubic": "interactions",
    "final_regressor": "model",
    "holdout_after": "holdout-after",
    "holdout_period": "holdout",
    "initial_regressor": "start",
    "noconstant": "no-bias",
    "oaa": "classes",
    "quadratic": "interactions",
}

TEST = ("-t", "--testonly")  # instead of which other commands evaluate or predict
# Options of VW that forel does not have; GUIDE says what to use instead of each.
GUIDE = "docs/guide/from_vw.md"
UNSUPPORTED = {
    "adaptive", "adax", "affix", "audit", "bfgs", "binary", "boosting", "bootstrap", "cache", "cache_file", "cats",
    "cb", "cb_adf", "cb_explore", "cb_explore_adf", "coin", "compressed", "csoaa", "csoaa_ldf", "daemon",
    "decay_learning_rate", "early_terminate", "ect", "examples", "hash", "ignore_linear", "initial_t", "initial_weight",
    "invariant", "invert_hash", "kill_cache", "learning_rate", "log_multi", "lrq", "max_prediction", "min_prediction",
    "multilabel_oaa", "multiworld_test", "nn", "node", "normalized", "plt", "power_t", "print", "progress",
    "random_seed", "random_weights", "raw_predictions", "readable_model", "save_per_pass", "sgd", "sort_features",
    "span_server", "spelling", "testonly", "total", "unique_id", "wap", "wap_ldf",
}  # fmt: skip
SHORT = {
    "a": "audit",
    "c": "cache",
    "k": "kill_cache",
    "l": "learning_rate",
    "P": "progress",
    "r": "raw_predictions",
    "t": "testonly",
}


def translate_name(name: str) -> str:
    """Return forel's name of an option of VW; raise for one that forel does not have.

    >>> translate_name("noconstant"), translate_name("alpha")
    ('no-bias', 'alpha')
    """
    full = SHORT.get(name, name)
    if full in UNSUPPORTED:
        dashes = "-" if name in SHORT else "--"
        hint = f"Vowpal Wabbit's {dashes}{name}"
        raise typer.BadParameter(f"forel does not have it; {GUIDE} says what to use instead", param_hint=hint)
    return NAMES.get(name, name)


def suggest_command(arguments: Sequence[str], known: Collection[str]) -> str | None:
    """Return the command for arguments of VW, which has no commands; None for other arguments.

    Parameters
    ----------
    arguments : of the command line
    known : commands, and options that may stand before one

    >>> suggest_command(["-d", "clicks.vw", "-q", "ab"], ["train", "--version"])
    'forel train -d clicks.vw -q ab'
    >>> suggest_command(["-t", "-d", "clicks.vw", "-i", "m.forel", "-p", "p.txt"], ["train", "--version"])
    'forel predict -d clicks.vw -i m.forel -p p.txt'
    """
    if arguments[0] in known:
        return None
    flags = {argument.partition("=")[0] for argument in arguments}
    if not (flags & {"-d", "--data"} or any(map(os.path.isfile, arguments))):
        return None
    tested = "predict" if flags & {"-p", "--predictions"} else "evaluate"
    command = tested if flags & {*TEST} else "train"
    return shlex.join(["forel", command, *(argument for argument in arguments if argument not in TEST)])


SQUARED = ("squared", "classic")  # VW's names of (p − y)², with and without importance-invariant updates


def translate_vw_options(
    chosen: Mapping[str, Any], vw: Mapping[str, Any], ftrl: bool, explicit: list[str]
) -> tuple[dict[str, Any], list[str], bool]:
    """Return settings in forel's names, the names of those that were given, and whether the constant is a feature.

    Without an alpha, forel mixes settings, for which VW has no options, and nothing changes.

    Parameters
    ----------
    chosen : settings by forel's names
    vw : settings given in VW's spelling, None for others; ``tau`` is the parameter of the quantile loss
    ftrl : whether the option that selects VW's FTRL is given
    explicit : the names of those among ``chosen`` that were given

    >>> chosen = {"loss": "logistic", "alpha": None, "bias": True}
    >>> translate_vw_options(chosen, {"loss": "squared", "alpha": 0.5}, False, [])
    ({'loss': 'squared_error', 'alpha': 0.5, 'bias': False}, ['loss', 'alpha'], True)
    """
    given = {name: value for name, value in vw.items() if value is not None and name != "tau"}
    twice = next((name for name in given if name in explicit), None)
    if twice is not None:
        raise typer.BadParameter(f"is given twice, once in VW's spelling; give --{twice} once", param_hint=f"--{twice}")
    settings = {**chosen, **given}
    names = [*explicit, *given]
    as_in_vw = (ftrl or bool(given)) and settings["alpha"] is not None
    if settings["loss"] in SQUARED:
        settings["loss"] = "squared_error" if as_in_vw else "squared"
    if vw.get("tau") is not None:
        if settings["loss"] != "quantile":
            raise typer.BadParameter("is for --loss quantile", param_hint="--quantile_tau")
        settings["loss"] = f"quantile:{vw['tau']}"
        names = list(dict.fromkeys([*names, "loss"]))
    settings["loss"] = _loss(settings["loss"])
    constant = as_in_vw and bool(settings["bias"])
    return {**settings, "bias": settings["bias"] and not constant}, names, constant


def _loss(text: str) -> Any:
    """Return a loss that an option names, with an error that shows the whole value."""
    from forel.losses.vocabulary import parse_loss  # slow to import
    from forel.validation import refuse

    try:
        return parse_loss(text)
    except ValueError as error:
        if str(error).startswith("loss: "):
            raise
        raise refuse("loss", text, f"{str(error).rpartition(', expected ')[2]} after the colon") from None
