"""``forel train``: from files to a model, in one pass unless told otherwise."""

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer

from forel.doors.cli.options import (
    READING,
    VW,
    AsJson,
    Bucket,
    Categories,
    Data,
    Files,
    Form,
    Ignore,
    Importance,
    Interactions,
    Keep,
    Label,
    LineLimit,
    Log,
    OnError,
    Threads,
    reading_options,
    source_of,
)
from forel.doors.cli.sentences import sentences
from forel.doors.cli.vowpal import as_in_vowpal_wabbit


def train(
    context: typer.Context,
    files: Files = None,
    model: Annotated[
        str | None, typer.Option("--model", "-f", "--final_regressor", help="Where to write the model.")
    ] = None,
    loss: Annotated[
        str,
        typer.Option(
            "--loss",
            help="logistic, hinge, squared_hinge, squared, absolute, huber, quantile, poisson, …",
        ),
    ] = "logistic",
    algorithm: Annotated[
        str,
        typer.Option(
            help="proximal (FTRL-Proximal), centered (dual averaging), mirror (gradient descent) or implicit."
        ),
    ] = "proximal",
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            help="The scale of the learning rate, for one model; without it, 16 settings are mixed.",
            show_default=False,
        ),
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option("--beta", help="What damps the first steps of the rate; 1 with --alpha.", show_default=False),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            help="How rates fall: adagrad (with --alpha), scale_free (mixed), constant or root (1/√t).",
            show_default=False,
        ),
    ] = None,
    l1: Annotated[
        float | None,
        typer.Option(help="Weight of the L1 penalty, for zeros; 0 with --alpha, 0.1 and 1 mixed.", show_default=False),
    ] = None,
    l2: Annotated[float, typer.Option(help="Weight of the L2 penalty.")] = 0.0,
    lanes: Annotated[int, typer.Option(help="How many settings are mixed without --alpha.")] = 16,
    share: Annotated[
        float | None,
        typer.Option(
            help="For streams that drift: of all weight in the mixture, so much goes to the other settings after each "
            "row, such as 0.001.",
            show_default=False,
        ),
    ] = None,
    best: Annotated[
        bool, typer.Option("--best", help="Write the best setting's model alone; --serving always does.")
    ] = False,
    penalty_weight: Annotated[str, typer.Option(help="Whether penalties count once, or every round.")] = "once",
    radius: Annotated[float | None, typer.Option(help="No weight becomes larger than this.")] = None,
    bias: Annotated[
        bool, typer.Option(" /--no-bias", " /--noconstant", help="Leave out the constant feature.", show_default=False)
    ] = True,
    passes: Annotated[int, typer.Option(help="How often to go over all files.")] = 1,
    holdout: Annotated[
        int,
        typer.Option(
            "--holdout",
            "--holdout_period",
            help="Every so many rows, one is predicted and not learned from; 0 for none.",
        ),
    ] = 0,
    holdout_after: Annotated[
        int | None,
        typer.Option(
            "--holdout-after", "--holdout_after", help="Rows after so many are predicted only.", show_default=False
        ),
    ] = None,
    certificate: Annotated[
        bool, typer.Option("--certificate", help="Say how much better any fixed model could have done.")
    ] = False,
    report: Annotated[str | None, typer.Option(help="Where to write a page of plots and figures, in HTML.")] = None,
    predictions: Annotated[
        str | None, typer.Option("--predictions", "-p", help="Where to write predictions made before learning.")
    ] = None,
    link: Annotated[
        str, typer.Option(help="How --predictions are written: auto, identity, logistic or glf1; see forel predict.")
    ] = "auto",
    start: Annotated[
        str | None,
        typer.Option("--start", "-i", "--initial_regressor", help="A model to go on from, with its settings."),
    ] = None,
    checkpoint: Annotated[
        int | None,
        typer.Option(help="Every so many rows, write the model so far to MODEL.checkpoint.", show_default=False),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from MODEL.checkpoint, if it is there; the same model results.")
    ] = False,
    cache: Annotated[
        str | None,
        typer.Option("--keep-cache", help="Where to keep parsed rows for later passes and runs.", show_default=False),
    ] = None,
    serving: Annotated[bool, typer.Option("--serving", help="Write a small model, for predicting only.")] = False,
    bits: Annotated[
        int | None,
        typer.Option(
            "--bits",
            "-b",
            "--bit_precision",
            help="Names are hashed to 2**bits slots; 22 if not said.",
            rich_help_panel=READING,
        ),
    ] = None,
    names: Annotated[
        bool, typer.Option("--names", help="Keep the names of features; reads more slowly.", rich_help_panel=READING)
    ] = False,
    form: Form = "auto",
    label: Label = None,
    importance: Importance = None,
    keep: Keep = None,
    ignore: Ignore = None,
    categories: Categories = None,
    log: Log = None,
    bucket: Bucket = None,
    interactions: Interactions = None,
    on_error: OnError = "raise",
    line_limit: LineLimit = None,
    threads: Threads = None,
    data: Data = None,
    test: Annotated[
        bool, typer.Option("-t", "--testonly", help="Learn nothing: evaluate the model of -i.", rich_help_panel=VW)
    ] = False,
    holdout_off: Annotated[
        bool, typer.Option("--holdout_off", help="Hold out nothing, as without --holdout.", rich_help_panel=VW)
    ] = False,
    ftrl: Annotated[
        bool,
        typer.Option(
            "--ftrl",
            "--save_resume",
            help="FTRL-Proximal and whole models, as always; with an alpha, learn as VW does.",
            rich_help_panel=VW,
        ),
    ] = False,
    ftrl_alpha: Annotated[
        float | None,
        typer.Option("--ftrl_alpha", help="--alpha of VW.", rich_help_panel=VW, show_default=False),
    ] = None,
    ftrl_beta: Annotated[
        float | None, typer.Option("--ftrl_beta", help="--beta of VW.", rich_help_panel=VW, show_default=False)
    ] = None,
    loss_function: Annotated[
        str | None,
        typer.Option(
            "--loss_function",
            help="--loss of VW: its squared loss is (p − y)², twice the one here.",
            rich_help_panel=VW,
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on files, each row predicted before it is learned from.

    Nothing needs tuning: 16 settings are learned at once and mixed, and the mixture loses at most log 16 = 2.77 more
    log-loss than the best of them, in all. With --alpha one model is learned. Start with docs/start/practitioner.md.

    \b
    Examples:
      forel train clicks.vw --model m.forel
      forel train day1.csv.gz day2.csv.gz --label click --model m.forel
      forel train clicks.vw --model m.forel --certificate --names --report report.html
      zcat clicks.vw.gz | forel train - --format vw --certificate
      forel train clicks.vw --model m.forel --checkpoint 1000000 --resume
      forel train -d clicks.vw -f m.forel -b 22 --ftrl_alpha 0.1 --ftrl_beta 1 --l1 1

    For Vowpal Wabbit users: -d, -f, -i, -t, -p, -b, -q, --l1, --l2, --ftrl_alpha, --ftrl_beta, --passes, --link,
    --noconstant and --holdout_off mean what they mean there, and so do --loss_function and its constant where there is
    an alpha; hashes differ, and so do defaults, which are shown. docs/guide/from_vw.md has more.
    """
    source = source_of(files, data)
    if test:
        if start is None:
            raise typer.BadParameter("needs the model to evaluate as -i", param_hint="-t")
        if report is not None:
            raise typer.BadParameter("is a report of training, and -t learns nothing", param_hint="--report")
        from forel.doors.cli.evaluate import evaluate
        from forel.doors.cli.predict import predict

        if predictions is not None:
            predict(source, start, predictions, link, None, True, form, label, on_error, line_limit, threads)
        else:
            evaluate(source, start, None, form, label, on_error, line_limit, threads, as_json)
        return
    with sentences():
        from forel.doors.cli.outputs import Kept, Predictions, interrupts_name, save_model, write_all
        from forel.doors.cli.page import Page
        from forel.doors.cli.predict import check_files, link_named
        from forel.doors.cli.progress import Reporter, finish
        from forel.doors.cli.resume import checkpoint_of
        from forel.learner.grid import default_grid
        from forel.store import load
        from forel.training.train import train

        given: dict[str, Any] = {
            "loss": loss, "algorithm": algorithm, "rate": rate, "alpha": alpha, "beta": beta, "l1": l1, "l2": l2,
            "penalty_weight": penalty_weight, "radius": radius, "bias": bias,
        }  # fmt: skip
        outputs = {"--model": model, "--predictions": predictions, "--report": report, "--keep-cache": cache}
        check_files(outputs, source)
        said = [k for k in given if getattr(context.get_parameter_source(k), "name", "") == "COMMANDLINE"]
        spelled = {"loss": loss_function, "alpha": ftrl_alpha, "beta": ftrl_beta}
        given, said, constant = as_in_vowpal_wabbit(given, spelled, ftrl, said)
        saving = checkpoint_of(model, checkpoint, resume, predictions, cache)
        stored = None if start is None else load(start)
        chosen = default_grid(**given, lanes=lanes) if stored is None else None
        if stored is not None:
            # What was said has to be what the model was begun with; what was not said is.
            chosen = replace(stored.settings, **{k: given[k] for k in said}) if said else None
        page = None if report is None else Page(report, source, certificate)
        reading = reading_options(
            format=form, bits=bits, label=label, importance=importance, keep=keep, ignore=ignore,
            categories=categories, log=log, bucket=bucket, interactions=interactions, names=names,
            tags=predictions is not None, constant=(constant and stored is None) or None, on_error=on_error,
            line_limit=line_limit, block_bytes=None if page is None else page.block_bytes,
        )  # fmt: skip
        with ExitStack() as held:
            out = None
            if predictions is not None:
                out = Predictions(predictions, link_named(link, chosen if stored is None else stored.settings))
                held.enter_context(out)
            with Reporter(source, passes, quiet or as_json) as progress:

                def each(moment: Any) -> None:
                    progress(moment)
                    if page is not None:
                        page.history(moment)
                    if out is not None:
                        out(moment)

                trained = train(
                    source, chosen, passes=passes, holdout=0 if holdout_off else holdout,
                    holdout_after=None if holdout_off else holdout_after, threads=threads,
                    certified=certificate, share=share, start=stored, copy=False, progress=each, cache=cache,
                    **saving, **reading,
                )  # fmt: skip
            aside, saved = predictions == "-", save_model(trained, model, Kept(serving, best))
            with interrupts_name(saved.path):
                write_all(
                    saved.check,
                    *(() if out is None else (out.close,)),
                    partial(finish, trained, saved.path, certificate, as_json, aside),
                    *(() if page is None else (partial(page.write, trained, aside=as_json or aside),)),
                )
        trained.remove_checkpoint()
