"""The options of ``forel train``: one frozen dataclass, whose fields are the parameters of the command."""

from dataclasses import dataclass
from typing import Annotated

import typer

from forel.cli.options import VW, AsJson, Data, Files, Threads
from forel.cli.reading_flags import NO_FLAGS, ReadingFlags

__all__ = ["COMMON_OPTIONS", "TrainOptions"]

# What --help shows; --help-all shows all options.
COMMON_OPTIONS = frozenset(
    {
        *("files", "loss", "alpha", "l1", "passes", "shuffle", "share", "by", "calibrate", "quiet", "as_json"),
        *("holdout", "holdout_after", "certificate", "report", "model", "serving", "predictions", "start"),
        *("checkpoint", "resume", "bits", "names", "format", "label", "positive", "classes", "importance", "keep"),
        *("ignore", "categories", "text", "date", "interactions", "help_all"),
    }
)

MODEL = "Model"
EVALUATION = "Evaluation"
FILES = "Output and checkpoints"
CLUSTER = "Cluster"


@dataclass(frozen=True)
class TrainOptions:
    """The values of all options; None for options that were not given."""

    files: Files = None
    loss: Annotated[
        str,
        typer.Option(
            help="logistic, hinge, softmax, squared, absolute, quantile (or quantile:0.9), poisson, …",
            rich_help_panel=MODEL,
        ),
    ] = "logistic"
    algorithm: Annotated[
        str,
        typer.Option(
            help="proximal (FTRL-Proximal), centered (dual averaging), mirror (gradient descent), implicit, "
            "or filter (Gaussian; --alpha is the prior variance).",
            rich_help_panel=MODEL,
        ),
    ] = "proximal"
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Scale of the learning rate, to train one model; by default, experts with several rates are mixed.",
            rich_help_panel=MODEL,
            show_default=False,
        ),
    ] = None
    beta: Annotated[
        float | None,
        typer.Option(help="Damping of the first steps; 1 with --alpha.", rich_help_panel=MODEL, show_default=False),
    ] = None
    rate: Annotated[
        str | None,
        typer.Option(
            help="Learning rate: adagrad (with --alpha), scale_free (mixed), constant or root (1/√t).",
            rich_help_panel=MODEL,
            show_default=False,
        ),
    ] = None
    l1: Annotated[
        float | None,
        typer.Option(
            help="Weight of the L1 penalty; 0 with --alpha, otherwise that of each expert.",
            rich_help_panel=MODEL,
            show_default=False,
        ),
    ] = None
    l2: Annotated[float, typer.Option(help="Weight of the L2 penalty.", rich_help_panel=MODEL)] = 0.0
    penalty_weight: Annotated[
        str, typer.Option(help="Add penalties once, or in every round.", rich_help_panel=MODEL)
    ] = "once"
    radius: Annotated[
        float | None,
        typer.Option(help="Largest absolute weight.", rich_help_panel=MODEL, show_default=False),
    ] = None
    no_bias: Annotated[
        bool, typer.Option("--no-bias", help="Leave out the constant feature.", rich_help_panel=MODEL)
    ] = False
    seed: Annotated[
        int, typer.Option(help="Seed of --shuffle, --subsample and stochastic rounding.", rich_help_panel=MODEL)
    ] = 0
    lanes: Annotated[
        int | None,
        typer.Option(
            help="Mix a grid of this many FTRL settings, without filters.", rich_help_panel=MODEL, show_default=False
        ),
    ] = None
    share: Annotated[
        float | None,
        typer.Option(
            help="For drifting streams: fraction of the mixture weights to share among settings after each row, "
            "such as 0.001.",
            rich_help_panel=MODEL,
            show_default=False,
        ),
    ] = None
    shuffle: Annotated[
        bool,
        typer.Option(
            "--shuffle",
            help="Learn from the rows in random order; needs a temporary file.",
            rich_help_panel=MODEL,
        ),
    ] = False
    by: Annotated[
        str | None,
        typer.Option(
            help="Train a model for each value of this column; in VW text, of a namespace.",
            rich_help_panel=MODEL,
            show_default=False,
        ),
    ] = None
    fallback: Annotated[
        bool,
        typer.Option(
            "--fallback",
            help="With --by, also train a model on all rows, for other values.",
            rich_help_panel=MODEL,
        ),
    ] = False
    subsample: Annotated[
        float | None,
        typer.Option(
            help="Learn from a random fraction of the negative rows, such as 0.1, with importance divided by it.",
            rich_help_panel=MODEL,
            show_default=False,
        ),
    ] = None
    min_count: Annotated[
        int | None,
        typer.Option(
            "--min-count",
            help="Ignore a feature before its n-th row; ignored features take no memory.",
            rich_help_panel=MODEL,
            show_default=False,
        ),
    ] = None
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate",
            help="Calibrate probabilities by online Platt scaling; every prediction of the model uses it.",
            rich_help_panel=MODEL,
        ),
    ] = False
    passes: Annotated[int, typer.Option(help="Number of passes over the data.", rich_help_panel=MODEL)] = 1
    holdout: Annotated[
        int,
        typer.Option(
            help="Hold out every n-th row: predict it, do not learn from it. 0 for none.",
            rich_help_panel=EVALUATION,
        ),
    ] = 0
    holdout_after: Annotated[
        int | None,
        typer.Option(
            help="Hold out all rows after the first n.",
            rich_help_panel=EVALUATION,
            show_default=False,
        ),
    ] = None
    certificate: Annotated[
        bool,
        typer.Option(
            "--certificate", help="Bound how much better any fixed model could be.", rich_help_panel=EVALUATION
        ),
    ] = False
    report: Annotated[
        str | None,
        typer.Option(help="Write a report with plots, in HTML.", rich_help_panel=EVALUATION, show_default=False),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-f",
            help="Write the model to this file.",
            rich_help_panel=FILES,
            show_default=False,
        ),
    ] = None
    best: Annotated[
        bool,
        typer.Option("--best", help="Write only the model of the best setting.", rich_help_panel=FILES),
    ] = False
    serving: Annotated[
        bool,
        typer.Option(
            "--serving",
            help="Write a small model, for predictions only: the best setting, or a mixture that has 1 % less loss.",
            rich_help_panel=FILES,
        ),
    ] = False
    predictions: Annotated[
        str | None,
        typer.Option(
            "--predictions",
            "-p",
            help="Write the predictions before learning (progressive) to this file.",
            rich_help_panel=FILES,
            show_default=False,
        ),
    ] = None
    link: Annotated[
        str,
        typer.Option(
            help="Scale of --predictions: auto, identity, logistic or glf1; see forel predict.", rich_help_panel=FILES
        ),
    ] = "auto"
    start: Annotated[
        str | None,
        typer.Option(
            "--start",
            "-i",
            help="Continue training this model, with its settings.",
            rich_help_panel=FILES,
            show_default=False,
        ),
    ] = None
    checkpoint: Annotated[
        int | None,
        typer.Option(
            help="Write MODEL.checkpoint every n rows.",
            rich_help_panel=FILES,
            show_default=False,
        ),
    ] = None
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Resume from MODEL.checkpoint if it exists; the model has the same bytes as without interruption.",
            rich_help_panel=FILES,
        ),
    ] = False
    cache: Annotated[
        str | None,
        typer.Option(
            "--keep-cache",
            help="Keep parsed rows in this file, for later passes and runs.",
            rich_help_panel=FILES,
            show_default=False,
        ),
    ] = None
    reading: ReadingFlags = NO_FLAGS
    threads: Threads = None
    ray: Annotated[
        str | None,
        typer.Option(
            help="Read files on a Ray cluster: its address, or local to start Ray here. The model is the same.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            help="Number of parallel readers of --ray; all CPUs but one by default.",
            rich_help_panel=CLUSTER,
            show_default=False,
        ),
    ] = None
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False
    as_json: AsJson = False
    data: Data = None
    test: Annotated[
        bool,
        typer.Option("-t", "--testonly", help="Evaluate the model of -i without learning.", rich_help_panel=VW),
    ] = False
    holdout_off: Annotated[
        bool, typer.Option("--holdout_off", help="Hold out nothing, the default.", rich_help_panel=VW)
    ] = False
    ftrl: Annotated[
        bool,
        typer.Option(
            "--ftrl",
            "--save_resume",
            help="Always on; with --alpha, learn as VW does.",
            rich_help_panel=VW,
        ),
    ] = False
    ftrl_alpha: Annotated[
        float | None,
        typer.Option("--ftrl_alpha", help="VW's name of --alpha.", rich_help_panel=VW, show_default=False),
    ] = None
    ftrl_beta: Annotated[
        float | None, typer.Option("--ftrl_beta", help="VW's name of --beta.", rich_help_panel=VW, show_default=False)
    ] = None
    oaa: Annotated[
        int | None,
        typer.Option("--oaa", help="VW's name of --classes, with a number.", rich_help_panel=VW, show_default=False),
    ] = None
    loss_function: Annotated[
        str | None,
        typer.Option(
            "--loss_function",
            help="VW's name of --loss; its squared loss is (p − y)², twice forel's.",
            rich_help_panel=VW,
            show_default=False,
        ),
    ] = None
    quantile_tau: Annotated[
        float | None,
        typer.Option("--quantile_tau", help="0.9 is --loss quantile:0.9.", rich_help_panel=VW, show_default=False),
    ] = None
