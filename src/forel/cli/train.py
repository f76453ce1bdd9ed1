"""``forel train``: from files to a model, in one pass by default."""

import re
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import fields, replace
from functools import partial
from inspect import signature
from typing import Any

import typer

from forel.cli.errors import errors_as_messages
from forel.cli.options import TrainOptions, check_files, source_of
from forel.cli.printing import say
from forel.cli.vowpal import translate_vw_options

__all__ = ["train"]


def train(context: typer.Context, options: TrainOptions) -> None:
    """Train a model on files, in one pass by default.

    Each row is predicted before the model learns from it.

    Nothing needs tuning: by default, several experts (learning rates, Gaussian
    filters, mixers of them; of columns of numbers also curves and pairs) are
    trained at once and mixed. The total log-loss of a mixture of K experts is at
    most log K larger than that of the best. With --alpha, one model is trained.

    The tutorial is docs/start/practitioner.md.

    \b
    Examples:
      forel train table.csv --label click --model m.forel
      forel train clicks.vw --model m.forel
      forel train day1.csv.gz day2.csv.gz --label click --model m.forel
      forel train clicks.vw -f m.forel --certificate --names --report r.html
      forel train iris.csv --label species --loss softmax --model m.forel
      zcat clicks.vw.gz | forel train - --format vw --certificate
      forel train clicks.vw --model m.forel --checkpoint 1000000 --resume
      forel train clicks.csv --label click --by country --model m.forel
      forel train 'logs/*.vw.gz' -f m.forel --ray local --workers 4
      forel train -d clicks.vw -f m.forel -b 22 --ftrl_alpha 0.1 --l1 1

    For Vowpal Wabbit users: -d, -f, -i, -p, -b, -q, --l1, --l2, --oaa,
    --ftrl_alpha, --ftrl_beta, --passes, --link, --noconstant and --holdout_off
    have the same meaning as in VW. With an alpha, so do --loss_function and
    the constant. Hashes and defaults differ; see docs/guide/from_vw.md.
    """
    source = source_of(options.files, options.reading)
    explicit = {
        one for one in context.params if getattr(context.get_parameter_source(one), "name", "") == "COMMANDLINE"
    }

    def unfinished() -> str:
        from forel.cli.outputs import unfinished_run

        return unfinished_run(options.model, before, options.resume or options.checkpoint is not None)

    with errors_as_messages(unfinished):
        from forel.cli.outputs import file_identity

        before = file_identity(options.model)
        _train(options, source, explicit)


def _train(options: TrainOptions, source: list[str], explicit: set[str]) -> None:
    from forel.cli.outputs import Page, Predictions, checkpoint_of, print_summary, reporter, save_model, write_all
    from forel.training.label_order import LabelOrderWarning, Remedies
    from forel.training.train import train

    check_files({"--model": options.model, "--predictions": options.predictions, "--report": options.report}, source)
    settings, start, vw_constant = _model_of(options, explicit)
    if options.by is not None:
        for name in ("report", "serving", "best"):
            if getattr(options, name):
                raise typer.BadParameter("is about one model, and --by trains several", param_hint=f"--{name}")
    saving = checkpoint_of(options.model, options.checkpoint, options.resume, options.predictions)
    page = None if options.report is None else Page(options.report, source, options.certificate)
    reading = {
        **options.reading.options(),
        "tags": options.predictions is not None,
        "constant": vw_constant or None,
        "block_bytes": None if page is None else page.block_bytes,
    }
    with ExitStack() as stack:
        out = None
        if options.predictions is not None:
            from forel.cli.predict import link_named

            link = link_named(options.link, settings if start is None else start.settings)
            out = stack.enter_context(Predictions(options.predictions, link))
        cluster = None
        if options.ray is not None:
            from forel.ray import RayWorkers

            cluster = stack.enter_context(RayWorkers(options.ray, options.workers))
        elif options.workers is not None:
            raise ValueError(f"workers: got {options.workers}, expected none without --ray")
        with reporter(source, options.passes, options.quiet or options.as_json) as progress:
            history = None if page is None else page.history
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LabelOrderWarning)  # printed below, with the options of the command
                trained = train(
                    source, settings, **_run_arguments(options), model=start, copy=False, cluster=cluster,
                    progress=_in_turn(progress, history, out), **saving, **reading,
                )  # fmt: skip
        order, remedies = trained.training.label_order, Remedies("--shuffle", "--share", "--holdout-after N")
        if order is not None and (warning := order.warning(trained.learner.classes, remedies)) is not None:
            say(f"forel: {warning}")
        on_stderr = options.predictions == "-"
        saved = save_model(trained, options.model, options.serving, options.best)
        write_all(
            saved.check,
            *(() if out is None else (out.close,)),
            partial(print_summary, trained, saved, options.certificate, options.as_json, on_stderr),
            *(() if page is None else (partial(page.write, trained, stderr=options.as_json or on_stderr),)),
        )
    trained.remove_checkpoint()


def _model_of(options: TrainOptions, explicit: set[str]) -> tuple[Any, Any, bool]:
    """Return settings, the stored model to start from, whose settings stay for None, and whether VW's constant is used.

    Settings have forel's or VW's spelling.
    """
    from forel.learner.grid import default_grid
    from forel.learner.settings import Settings

    vw = {"loss": options.loss_function, "alpha": options.ftrl_alpha, "beta": options.ftrl_beta}
    vw["tau"] = options.quantile_tau
    flags = [field.name for field in fields(Settings) if hasattr(options, field.name)]
    chosen = {"bias": not options.no_bias, **{name: getattr(options, name) for name in flags}}
    given = [*(["bias"] if "no_bias" in explicit else []), *(name for name in flags if name in explicit)]
    values, names, constant = translate_vw_options(chosen, vw, options.ftrl, given)
    if options.lanes is not None and values["alpha"] is not None:
        raise typer.BadParameter("is a number of settings to mix, and --alpha is one setting", param_hint="--lanes")
    if options.start is None:
        return default_grid(**values, lanes=options.lanes), None, constant
    from forel.training.model import load
    from forel.training.train import initial_settings

    stored = load(options.start)
    try:
        initial_settings(None, None, stored)
    except ValueError as error:
        raise ValueError(re.sub("^model(?=: )", "--start", str(error))) from None
    # Settings that are given have to be those of the model; training compares them.
    return (replace(stored.settings, **{name: values[name] for name in names}) if names else None), stored, False


def _in_turn(*observers: Callable[[Any], None] | None) -> Callable[[Any], None]:
    """Return several functions, None for none, as one that reads the model if one of them does."""
    from forel.training.progress import reads_model

    def observe(moment: Any) -> None:
        for each in observers:
            if each is not None:
                each(moment)

    observe.reads_model = any(map(reads_model, observers))  # type: ignore[attr-defined]
    return observe


def _run_arguments(options: TrainOptions) -> dict[str, Any]:
    """Return the arguments of :func:`forel.train` that are options of the same name, or of another one."""
    from forel.training.train import MoreOptions, train

    others = {"loss", "shuffle", "model", "checkpoint", "resume", "progress"}
    names = {*signature(train).parameters, *(field.name for field in fields(MoreOptions))} - others
    found = {one.name: getattr(options, one.name) for one in fields(options) if one.name in names}
    holdout = {"holdout": 0, "holdout_after": None} if options.holdout_off else {}
    return {**found, **holdout, "fixed_share": options.share, "shuffle": options.seed if options.shuffle else None}
