"""Training: passes over a source, with each row predicted before it is learned from."""

import os
import time
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from copy import deepcopy
from functools import partial
from typing import Any

from forel.data import Names, Problems, ReadOptions
from forel.data.features.kinds import Kinds
from forel.data.holdout import Holdout
from forel.data.labels import ClassNames, padded_names
from forel.data.pieces import Workers
from forel.data.reader import names_for
from forel.jit import compile_seconds
from forel.learner.certificate_sums import CertificateSums
from forel.learner.learner import Learner
from forel.learner.settings import Settings
from forel.losses import MarginLoss
from forel.losses.custom import Function
from forel.store.atomic import Path
from forel.store.calibration import calibration_of
from forel.store.header import user_defined_loss
from forel.store.locks import exclusive_lock
from forel.training.by_key import KeyLearners, train_by_key
from forel.training.calibrating import Calibrator, check_calibration
from forel.training.checkpoint import CheckpointWriter, read_checkpoint, run_fingerprint
from forel.training.classes import count_classes, metrics_for
from forel.training.held_out_rows import HeldOutRows
from forel.training.inclusion import Inclusion, InclusionRule
from forel.training.label_order import LabelOrder, LabelOrderWarning
from forel.training.learning import counted_blocks, end_pass, learn_pass
from forel.training.metrics import StreamMetrics
from forel.training.model import Model, as_model
from forel.training.options import options_for
from forel.training.passes import Passes
from forel.training.progress_bar import observer
from forel.training.result import Training
from forel.training.schema import SchemaTracker
from forel.training.slices import SliceMetrics, slice_tables
from forel.training.start import initial_model, initial_settings, settings_with_loss
from forel.training.state import Progress, TrainingState, reads_model
from forel.training.subsampling import Subsampling
from forel.validation import refuse, whole

__all__ = ["train"]

OWN_EXTRA = (
    "reading",
    "report",
    "holdout",
    "final",
    "checkpoint",
    "schema",
    "calibration",
    "inclusion",
)  # extra content that training writes itself


def train(
    source: Any,
    settings: Settings | None = None,
    *,
    loss: str | MarginLoss | Function | None = None,
    passes: int = 1,
    holdout: int = 0,
    holdout_after: int | None = None,
    threads: int | None = None,
    cluster: Workers | None = None,
    by: str | None = None,
    fallback: bool = False,
    learners: KeyLearners | None = None,
    certified: bool = False,
    share: float | None = None,
    shuffle: int | None = None,
    subsample: float | None = None,
    min_count: int | None = None,
    include_probability: float | None = None,
    calibrate: bool = False,
    start: Model | Path | None = None,
    copy: bool = True,
    progress: Callable[[Progress], None] | bool | None = None,
    cache: Path | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: int = 1_000_000,
    resume: bool = False,
    **reading: Any,
) -> Model:
    """Train a model on a source, in constant memory.

    Parameters
    ----------
    source : as in :func:`forel.data.read`: paths, patterns, "-", file objects, tables, arrays, Ray datasets, dicts
    settings : loss, algorithm and hyperparameters; several values of one are mixed; None for those of
        :func:`forel.learner.grid.default_grid`
    loss : of the default settings, such as "squared" for regression or "poisson" for counts; None for log-loss
    passes : number of passes over the source
    holdout : hold out every n-th row, which is predicted but not learned from; 0 for none
    holdout_after : or hold out all rows after the first n
    threads : number of parser threads, which does not change the result; None for a default
    cluster : reads and parses files elsewhere, such as :class:`forel.ray.RayWorkers` on a Ray cluster, which
        does not change the result either; None for this process
    by : train a model for each value of this column, each as on its rows alone; ``Model.training.keys`` has their
        metrics. In VW text, the column is a namespace, or "tag"
    fallback : with ``by``, also train a model on all rows, for keys that were not in the data
    learners : with ``by``, learn the models elsewhere, such as :class:`forel.ray.RayKeys` on a Ray cluster,
        which does not change the result
    certified : keep the sums that a certificate needs
    share : share of a mixture for drifting streams, as in :class:`forel.learner.learner.Learner`
    shuffle : seed of a random order of the rows, by a temporary file in bounded memory; None for their own order
    subsample : learn from a random part of the negative rows, such as 0.1, with importances divided by it; None for all
    min_count : learn from a feature at its n-th row and later ones, for streams with many rare features; None for all
    include_probability : or from a random row on: each of its rows is that row with this probability
    calibrate : calibrate probabilities by online Platt scaling, which every prediction of the model then uses; a model
        to continue from stays calibrated
    start : a model to continue from, with its settings and read options: a path, or the result of :func:`forel.load` or
        of this function
    copy : train a copy of it; False trains the given model in place, which saves memory
    progress : called after each block; None for a bar in notebooks, True for one on terminals as well, False for none.
        A function with the attribute ``reads_model = False`` allows a mixture to learn the next block meanwhile
    cache : file of parsed blocks for later passes and runs, which is read if it exists; None for a temporary file
    checkpoint : file for the model and the state of the run, from which an interrupted run resumes; removed when the
        trained model is saved
    checkpoint_every : number of rows between checkpoints, which are written at the end of a block
    resume : resume from the checkpoint if it exists; options and files must be the same, and the model is bitwise the
        same as without the interruption
    reading : options of :class:`forel.data.ReadOptions`: ``bits``, ``format``, ``label``, ``names``, ``on_error``, ...

    Labels that come sorted cause a :class:`forel.training.label_order.LabelOrderWarning`: learning in order, a model
    forgets the class that came first.

    Labels of −1 and 1, or of 0 and 1, suit both log-loss and hinge losses. Labels of more than two words are classes,
    each learned against the rest, or jointly with the loss "softmax"; numbers are with the option ``classes``.

    >>> clicks = [{"site": "news", "click": 1}, {"site": "shop", "click": 0}] * 50
    >>> trained = train(clicks, Settings(alpha=1.0), label="click", bits=10, holdout=10)
    >>> trained.learner.rounds, trained.training.holdout.rows, round(trained.report.loss, 2)
    (90, 10, 0.15)
    >>> train(clicks, loss="squared", label="click", bits=10).report.loss < 0.05
    True
    >>> print(train(clicks, label="click", bits=10).learner.guarantee())
    within 0.02... per example of the best of 13 experts over 100 rows, which is ... (0.0...)
    """
    held_out = _holdout(holdout, holdout_after)
    start = None if start is None else as_model(start)
    settings = settings_with_loss(settings, loss, start)
    options = options_for(source, start, reading)
    joint = settings is not None and settings.loss_function.joint
    options = options.updated({"classes": "auto" if joint and options.classes is None else None})
    if by is not None:
        one_model = {
            "shuffle": shuffle, "subsample": subsample, "min_count": min_count,
            "include_probability": include_probability, "start": None if start is None else "a model", "cache": cache,
        }  # fmt: skip
        for name, value in one_model.items():
            if value is not None:
                raise refuse(name, value, "none with by (--by); it is for one model, trained on the rows of one key")
        number = whole("passes", passes, low=1)
        with observer(progress, source, number) as observe:
            return train_by_key(
                source, initial_settings(settings, None), options, by, fallback=fallback, holdout=held_out,
                passes=number, certified=certified, share=share, threads=threads, cluster=cluster, learners=learners,
                names=names_for(options, reading.get("names")), progress=observe, checkpoint=checkpoint,
                checkpoint_every=whole("checkpoint_every", checkpoint_every, low=1), resume=resume, calibrate=calibrate,
            )  # fmt: skip
    if fallback or learners is not None:
        raise refuse("fallback" if fallback else "learners", fallback or learners, "none without by (--by)")
    with ExitStack() as stack:
        number = whole("passes", passes, low=1)
        observe = stack.enter_context(observer(progress, source, number))
        seed = None if shuffle is None else whole("shuffle", shuffle)
        blocks = stack.enter_context(Passes(source, options, number, cache, threads, cluster, seed))
        settings = initial_settings(settings, start, certified, share)
        if start is not None:
            certified, share = start.learner.certified, start.learner.share
        calibrate = calibrate or (start is not None and calibration_of(start.extra) is not None)
        rule = InclusionRule(min_count, include_probability)
        rule = rule if start is None else rule.check_start(start.extra.get("inclusion", {}))
        rule.check_model(certified)
        sampling = None if subsample is None else Subsampling(subsample, settings.seed)
        problems, classes, schema = Problems(options.on_error), ClassNames(options.classes), SchemaTracker(options)

        def new_metrics(model: Learner) -> StreamMetrics:
            return metrics_for(settings, model, classes.names)

        others = {} if start is None else {name: v for name, v in start.extra.items() if name not in OWN_EXTRA}
        stored_options = options.stored
        model, begun, save, state = None, None, None, None
        if checkpoint is not None:
            fingerprint = run_fingerprint(blocks, held_out, settings, certified, share, start)
            fingerprint |= {} if subsample is None else {"subsample": subsample}
            fingerprint |= rule.to_json() | ({"calibrate": True} if calibrate else {})
            every = whole("checkpoint_every", checkpoint_every, low=1)
            stack.enter_context(exclusive_lock(checkpoint))
            if resume and os.path.exists(checkpoint):
                own = user_defined_loss(settings)
                model, state = read_checkpoint(checkpoint, fingerprint, problems, classes, schema, new_metrics, own)
            extra = {**others, "reading": stored_options}
            where = (1, 0) if state is None else (state.pass_number, state.rows)
            save = CheckpointWriter(checkpoint, every, fingerprint, extra, *where)
        if model is None or state is None:
            names, kinds = _names(options, reading.get("names"), start, copy), Kinds(options.kinds)
            counts = deque[tuple[int, int]]()
            first = blocks.blocks(1, problems, names, kinds=kinds, classes=classes)
            first = counted_blocks(first, problems, counts)
            count, begun = (None, first) if start else count_classes(options, settings, classes, first)
            if certified and count is not None and not settings.loss_function.joint:
                raise refuse("certified", certified, "False for classes one against the rest; use loss='softmax'")
            features = 1 << options.bits
            model = initial_model(features, settings, start, copy, certified, share, count)
            metrics = new_metrics(model), new_metrics(model)
            slices = [SliceMetrics(column, metrics[0]) for column in options.slices]
            state = TrainingState(
                *metrics, problems, names, counts=counts, kinds=kinds, classes=classes, schema=schema, slices=slices
            )  # fmt: skip
            # Rows at the end of an ordered stream are predicted by the final model in any case.
            if held_out.every or (held_out.after is not None and shuffle is not None):
                state.kept = HeldOutRows()
            if rule.active:
                state.inclusion = Inclusion(rule, 1 << options.bits, settings.seed)
                if start is not None:
                    state.inclusion.unpack(start.arrays)
            if calibrate:
                check_calibration(settings, model.classes)
                before = None if start is None else start.extra
                state.calibrator = Calibrator(partial(new_metrics, model), options.slices, before)
            if start is not None:
                schema.extend(start.extra.get("schema", {}), start.learner.rounds)
        if state.pass_number == 1:  # the certificate is about the rows of this run only
            state.certificate.before = CertificateSums() if start is None else start.learner.snapshot()

        def exact() -> bool:
            """Return whether a callback or a checkpoint needs the model after the block that was learned last."""
            return reads_model(observe) or (save is not None and save.due(state))

        final = None
        order = LabelOrder(shuffled=shuffle is not None)
        started, compiled = time.perf_counter() - state.seconds, compile_seconds() - state.compiling
        while state.pass_number <= blocks.number:
            given = begun if state.pass_number == 1 else None
            for update in learn_pass(model, state, blocks, held_out, given, sampling, exact):
                state.seconds, state.compiling = time.perf_counter() - started, compile_seconds() - compiled
                order(update)
                if observe is not None:
                    observe(update)
                if save is not None and state.rows == update.rows:  # the model has not begun with the next block
                    save(model, state)
            end_pass(model, state, state.pass_number < blocks.number)
            holdout_report = state.holdout.report() if any(held_out) else None
            calibrated = None if state.calibrator is None else state.calibrator.result(any(held_out))
            if state.pass_number == blocks.number and state.kept is not None:
                final = state.kept.report(model, new_metrics(model))
            state.next_pass(partial(new_metrics, model))
    if state.kinds.known:
        stored_options["kinds"] = state.kinds.known
    if model.classes is not None:
        stored_options["classes"] = list(padded_names(classes.names, model.classes))
    reports = tuple(metrics.report() for metrics in state.finished)
    if options.positive is not None and start is None and reports[0].mean_label in (0.0, -1.0):
        warnings.warn(f"positive: got {options.positive!r}, which no row has as its label", UserWarning, stacklevel=2)
    if (message := order.warning(model.classes)) is not None:
        warnings.warn(message, LabelOrderWarning, stacklevel=2)
    rows, entries = state.first_pass
    training = Training(
        report=reports[0], holdout=holdout_report, final=final, passes=reports, rows=rows, entries=entries,
        seconds=time.perf_counter() - started, compiling=compile_seconds() - compiled, problems=state.problems,
        certificate=state.certificate.summary, frontier=state.certificate.frontier,
        slices=slice_tables(state.slices, warn=True), calibrated=calibrated, inclusion=state.inclusion,
        label_order=order, checkpoint=checkpoint,
    )  # fmt: skip
    return Model.trained(model, training, state.names, stored_options, state.schema.schema(state.kinds), others)


def _holdout(every: int, after: int | None) -> Holdout:
    every = whole("holdout", every)
    if every == 1:
        raise refuse("holdout", every, "0 for none, or at least 2: every n-th row is held out")
    after = None if after is None else whole("holdout_after", after, low=1)
    if after is not None and every:
        raise refuse("holdout", every, "0 if holdout_after is used")
    return Holdout(every, after)


def _names(options: ReadOptions, names: bool | Names | None, start: Model | None, copy: bool) -> Names | None:
    """Return the table that names are recorded in; None if they are not; a stored model keeps its names."""
    if start is None or start.names is None:
        return names_for(options, names)
    return names_for(options, deepcopy(start.names) if copy else start.names)
