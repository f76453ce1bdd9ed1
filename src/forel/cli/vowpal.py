"""Options in Vowpal Wabbit's spelling: its squared loss is the squared error, and its constant is a feature."""

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import typer

__all__ = ["UNSUPPORTED", "suggest_train", "translate_name", "translate_vw_options"]

# Options of VW under another name here.
NAMES = {
    "bit_precision": "bits",
    "cubic": "interactions",
    "final_regressor": "model",
    "holdout_after": "holdout-after",
    "holdout_period": "holdout",
    "initial_regressor": "start",
    "noconstant": "no-bias",
    "quadratic": "interactions",
}

# Options of VW that forel does not have, and what to use instead.
CONTEXTUAL = "forel has no contextual bandits; learn the cost of each action with --loss squared, one model for each"
REDUCTION = "use --oaa or --classes: one model for each class, or --loss softmax; costs are not used"
RATES = "use --alpha, the scale of the learning rates; without it, experts with several rates are mixed"
GRADIENT = "leave it out: rates of each feature adapt to gradients; --algorithm mirror is gradient descent"
CACHE = "leave it out: later passes read a temporary cache; --keep-cache FILE keeps it"
NAMED = "use --names, and then forel inspect"
CLUSTER = "use --ray, which reads files on many machines"
CLIP = "leave it out: without --alpha, predictions of regression stay within the range of the labels seen so far"
BANDITS = ("cb", "cb_adf", "cb_explore", "cb_explore_adf", "cats", "multiworld_test")
UNSUPPORTED = {
    **dict.fromkeys(BANDITS, CONTEXTUAL),
    **dict.fromkeys(("csoaa", "csoaa_ldf", "wap", "wap_ldf", "ect", "log_multi", "plt"), REDUCTION),
    **dict.fromkeys(("learning_rate", "power_t", "initial_t", "decay_learning_rate"), RATES),
    **dict.fromkeys(("adaptive", "normalized", "invariant", "sgd", "adax"), GRADIENT),
    **dict.fromkeys(("cache", "cache_file", "kill_cache", "compressed"), CACHE),
    **dict.fromkeys(("invert_hash", "readable_model", "print"), NAMED),
    **dict.fromkeys(("span_server", "unique_id", "total", "node"), CLUSTER),
    **dict.fromkeys(("min_prediction", "max_prediction"), CLIP),
    "audit": "use forel explain FILE --model m.forel, which shows the contribution of each feature",
    "binary": "leave it out: predictions are probabilities, above 0.5 for the positive class",
    "bfgs": "leave it out: learning is online; --passes makes several passes",
    "bootstrap": "leave it out: one model is trained, or a mixture of settings",
    "boosting": "forel learns linear models; -q and --interactions add products of features",
    "coin": "use --rate scale_free, which needs no bound on values in advance either",
    "daemon": "use forel predict - as a co-process: it answers each line as it comes",
    "early_terminate": "use --holdout, and choose the number of --passes by the held-out loss",
    "hash": "leave it out: names are hashed as text, as with --hash all",
    "examples": "give the first lines of a file on standard input: head -n 1000 FILE | forel train -",
    "initial_weight": "leave it out: weights begin at 0; -i continues from a model",
    "random_weights": "leave it out: weights begin at 0; -i continues from a model",
    "ignore_linear": "leave it out: crosses are added to the features",
    "affix": "use --char-ngram for columns of text",
    "spelling": "use --char-ngram for columns of text",
    "multilabel_oaa": "train one model for each label",
    "lrq": "use -q or --interactions: products of all pairs",
    "nn": "forel learns linear models; -q and --interactions add products of features",
    "progress": "leave it out: a line is printed after every doubling of rows, or a bar on a terminal",
    "random_seed": "use --seed, for the rounding of float32 sums, --shuffle and --subsample",
    "raw_predictions": "use forel predict --link identity, which writes margins",
    "save_per_pass": "use --checkpoint, which writes the model every n rows",
    "sort_features": "leave it out: the order of features does not matter",
}
SHORT = {"a": "audit", "c": "cache", "k": "kill_cache", "l": "learning_rate", "P": "progress", "r": "raw_predictions"}


def translate_name(name: str) -> str:
    """Return forel's name of an option of VW; the error for an unsupported option suggests a replacement.

    >>> translate_name("noconstant"), translate_name("alpha")
    ('no-bias', 'alpha')
    """
    full = SHORT.get(name, name)
    if full in UNSUPPORTED:
        dashes = "-" if name in SHORT else "--"
        raise typer.BadParameter(UNSUPPORTED[full], param_hint=f"Vowpal Wabbit's {dashes}{name}")
    return NAMES.get(name, name)


def suggest_train(arguments: Sequence[str], known: Collection[str]) -> str | None:
    """Return the command to train for arguments of VW, which has no commands; None for other arguments.

    Parameters
    ----------
    arguments : of the command line
    known : commands, and options that may stand before one

    >>> suggest_train(["-d", "clicks.vw", "-q", "ab"], ["train", "--version"])
    'forel train -d clicks.vw -q ab'
    """
    if arguments[0] in known:
        return None
    flags = (argument.partition("=")[0] for argument in arguments)
    data = any(flag in ("-d", "--data") for flag in flags) or any(map(os.path.isfile, arguments))
    return shlex.join(["forel", "train", *arguments]) if data else None


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
