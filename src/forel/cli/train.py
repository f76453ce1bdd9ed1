"""``forel train``: from files to a model, in one pass by default."""

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from inspect import signature
from typing import Any

import typer

from forel.cli.commands import command_of
from forel.cli.errors import errors_as_messages
from forel.cli.options import COMMON_OPTIONS as COMMON_OPTIONS
from forel.cli.options import ReadingFlags, TrainOptions, source_of
from forel.cli.printing import say
from forel.cli.vowpal import translate_vw_options

__all__ = ["train"]


@command_of(TrainOptions)
def train(options: TrainOptions, explicit: frozenset[str]) -> None:
    """Train a model on files, in one pass by default.

    Each row is predicted before the model learns from it.

    Nothing needs tuning: by default, up to thirteen experts (learning rates,
    Gaussian filters, mixers of them) are trained at once and mixed. The total
    log-loss of the mixture is at most log 13 = 2.6 larger than that of the best.
    With --alpha, one model is trained.

    The tutorial is docs/start/practitioner.md.

    \b
    Examples:
      forel train clicks.vw --model m.forel
      forel train day1.csv.gz day2.csv.gz --label click --model m.forel
      forel train clicks.vw -f m.forel --certificate --names --report r.html
      forel train iris.csv --label species --loss softmax --model m.forel
      zcat clicks.vw.gz | forel train - --format vw --certificate
      forel train clicks.vw --model m.forel --checkpoint 1000000 --resume
      forel train clicks.csv --label click --by country --model m.forel
      forel train 'logs/*.vw.gz' -f m.forel --ray local --workers 4
      forel train -d clicks.vw -f m.forel -b 22 --ftrl_alpha 0.1 --l1 1

    For Vowpal Wabbit users: -d, -f, -i, -t, -p, -b, -q, --l1, --l2, --oaa,
    --ftrl_alpha, --ftrl_beta, --passes, --link, --noconstant and --holdout_off
    have the same meaning as in VW. With an alpha, so do --loss_function and
    the constant. Hashes and defaults differ; see docs/guide/from_vw.md.
    """
    source = source_of(options.files, options.data)
    if options.test:
        _evaluate_only(options, source)
        return
    with errors_as_messages(partial(_unfinished, options)):
        _train(options, source, explicit)


def _unfinished(options: TrainOptions) -> str:
    from forel.cli.outputs import unfinished_run

    return unfinished_run(options.model, options.checkpoint, options.resume)


def _evaluate_only(options: TrainOptions, source: list[str]) -> None:
    """Run ``forel evaluate``, or ``forel predict`` if there is a file for predictions, as -t does in VW."""
    if options.start is None:
        raise typer.BadParameter("needs the model to evaluate as -i", param_hint="-t")
    if options.report is not None:
        raise typer.BadParameter("is a report of training, and -t learns nothing", param_hint="--report")
    from forel.cli.evaluate import evaluate
    from forel.cli.predict import predict

    if options.predictions is not None:
        predict(
            source,
            options.start,
            options.predictions,
            options.link,
            threads=options.threads,
            reading=options.reading.taken_by("predict"),
        )
    else:
        evaluate(
            source,
            options.start,
            as_json=options.as_json,
            threads=options.threads,
            reading=options.reading.taken_by("evaluate"),
        )


@dataclass(frozen=True)
class _Model:
    """What to train: settings, or None for those of the stored model, and the model to start from, if any."""

    settings: Any
    stored: Any
    vw_constant: bool

    @property
    def link_settings(self) -> Any:
        return self.settings if self.stored is None else self.stored.settings


def _model_of(options: TrainOptions, explicit: frozenset[str]) -> _Model:
    """Return the settings in forel's or VW's spelling, and the stored model to start from."""
    from forel.learner.grid import default_grid
    from forel.learner.settings import Settings

    vw = {"loss": options.loss_function, "alpha": options.ftrl_alpha, "beta": options.ftrl_beta}
    vw["tau"] = options.quantile_tau
    flags = [field.name for field in fields(Settings) if hasattr(options, field.name)]
    chosen = {"bias": not options.no_bias, **{name: getattr(options, name) for name in flags}}
    explicit_settings = [*(["bias"] if "no_bias" in explicit else []), *(name for name in flags if name in explicit)]
    values, names, constant = translate_vw_options(chosen, vw, options.ftrl, explicit_settings)
    if options.lanes is not None and values["alpha"] is not None:
        raise typer.BadParameter("is a number of settings to mix, and --alpha is one setting", param_hint="--lanes")
    if options.start is None:
        return _Model(default_grid(**values, lanes=options.lanes), None, constant)
    from forel.training.model import load
    from forel.training.start import initial_settings

    stored = load(options.start)
    try:
        initial_settings(None, stored)
    except ValueError as error:
        raise ValueError(re.sub("^model(?=: )", "--start", str(error))) from None
    # Settings that are given have to be those of the model; training compares them.
    settings = replace(stored.settings, **{name: values[name] for name in names}) if names else None
    return _Model(settings, stored, False)


def _train(options: TrainOptions, source: list[str], explicit: frozenset[str]) -> None:
    from forel.cli.outputs import (
        Observers,
        Predictions,
        SaveOptions,
        checkpoint_of,
        interrupts_name,
        save_model,
        write_all,
    )
    from forel.cli.predict import check_files, link_named
    from forel.cli.progress import print_summary, reporter
    from forel.training.label_order import LabelOrderWarning, Remedies
    from forel.training.train import train

    outputs = {
        "--model": options.model, "--predictions": options.predictions, "--report": options.report,
    }  # fmt: skip
    check_files(outputs, source)
    chosen = _model_of(options, explicit)
    if options.by is not None:
        _check_by(options)
    saving = checkpoint_of(options.model, options.checkpoint, options.resume, options.predictions)
    page = None
    if options.report is not None:
        from forel.cli.outputs import Page

        page = Page(options.report, source, options.certificate)
    reading = {
        **_with_oaa(options).options(),
        "tags": options.predictions is not None,
        "constant": chosen.vw_constant or None,
        "block_bytes": None if page is None else page.block_bytes,
    }
    with ExitStack() as stack:
        out = None
        if options.predictions is not None:
            link = link_named(options.link, chosen.link_settings)
            out = stack.enter_context(Predictions(options.predictions, link))
        cluster = stack.enter_context(_cluster(options))
        with reporter(source, options.passes, options.quiet or options.as_json) as progress:
            history = None if page is None else page.history
            observers = [each for each in (progress, history, out) if each is not None]

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LabelOrderWarning)  # printed below, with the options of the command
                trained = train(
                    source, chosen.settings, **_run_arguments(options), model=chosen.stored, copy=False,
                    progress=Observers(observers),
                    **cluster, **saving, **reading,
                )  # fmt: skip
        order = trained.training.label_order
        if (
            order is not None
            and (
                warning := order.warning(trained.learner.classes, Remedies("--shuffle", "--share", "--holdout-after N"))
            )
            is not None
        ):
            say(f"forel: {warning}")
        on_stderr = options.predictions == "-"
        saved = save_model(trained, options.model, SaveOptions(options.serving, options.best))
        with interrupts_name(saved.path):
            write_all(
                saved.check,
                *(() if out is None else (out.close,)),
                partial(print_summary, trained, saved, options.certificate, options.as_json, on_stderr),
                *(() if page is None else (partial(page.write, trained, stderr=options.as_json or on_stderr),)),
            )
    trained.remove_checkpoint()


@contextmanager
def _cluster(options: TrainOptions) -> Iterator[dict[str, Any]]:
    """Start what --ray needs, and yield arguments of ``train``."""
    from forel.validation import refuse

    if options.ray is None:
        if options.workers is not None:
            raise refuse("workers", options.workers, "none without --ray")
        yield {}
        return
    from forel.ray import RayWorkers

    with RayWorkers(options.ray, options.workers) as workers:
        yield {"cluster": workers}


def _check_by(options: TrainOptions) -> None:
    """Refuse options that are about one model."""
    for name, given in (("--report", options.report), ("--serving", options.serving), ("--best", options.best)):
        if given:
            raise typer.BadParameter("is about one model, and --by trains several", param_hint=name)


def _with_oaa(options: TrainOptions) -> ReadingFlags:
    """Return the flags of reading, with classes also in VW's spelling."""
    if options.oaa is None:
        return options.reading
    if options.reading.classes is not None:
        raise typer.BadParameter("is VW's name of --classes; give one of them", param_hint="--oaa")
    return replace(options.reading, classes=str(options.oaa))


def _run_arguments(options: TrainOptions) -> Mapping[str, Any]:
    """Return the arguments of :func:`forel.train` that are options of the same name, or of another one."""
    from forel.training.train import MoreOptions, train

    others = {"loss", "shuffle", "model", "checkpoint", "resume", "progress"}
    names = {*signature(train).parameters, *(field.name for field in fields(MoreOptions))} - others
    found = {one.name: getattr(options, one.name) for one in fields(options) if one.name in names}
    holdout = {"holdout": 0, "holdout_after": None} if options.holdout_off else {}
    return {**found, **holdout, "fixed_share": options.share, "shuffle": options.seed if options.shuffle else None}
