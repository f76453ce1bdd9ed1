"""Training: passes over a source, with each row predicted before it is learned from."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import partial
from inspect import signature
from typing import Any, Unpack, cast

from numpy.typing import NDArray

from forel.data import Block, Names, ReadOptions
from forel.data.labels import padded_names
from forel.data.options import OtherReadKeywords
from forel.data.pieces import Workers
from forel.data.reader import names_for
from forel.data.sources.files import file_state, is_file, single_sources
from forel.evidence import Coverage
from forel.learner.certify import CertificateSums
from forel.learner.grid import default_grid, without_filters
from forel.learner.keyed import ONE_KEY, KeyedModels
from forel.learner.learner import Learner
from forel.learner.rows import CoalescedRows
from forel.learner.settings import Settings
from forel.losses import MarginLoss
from forel.losses.custom import Function
from forel.store import Content, ServingModel
from forel.store.atomic import Path, exclusive_lock
from forel.store.header import settings_to_json, user_defined_loss
from forel.store.named_weights import column_of
from forel.training.checkpoint import Checkpoints, open_checkpoint, restore, start_fingerprint
from forel.training.class_weight import BalancedClasses
from forel.training.curves import DEFAULT, Features, checked_features, curves_of_source
from forel.training.holdout import HeldOutRows, Holdout
from forel.training.label_order import LabelOrder, LabelOrderWarning
from forel.training.labels import EncodeLabels, count_classes
from forel.training.metrics import Measures, label_kind, metrics_for
from forel.training.model import Model, as_model
from forel.training.passes import Passes
from forel.training.progress import Callback, MemoryLimit, Progress, sizes, watching
from forel.training.result import Training
from forel.training.row_sample import ColumnSpread, LeakWarning, column_spreads, moments
from forel.training.run import Learn, Observer, Place, Run, Step, Transform, available_cores
from forel.training.run_certificate import CertificateOfRun
from forel.training.schema import SchemaOfRun
from forel.training.slices import Slices, naming_key
from forel.training.statements import Statements, coverage_of
from forel.validation import refuse, whole

__all__ = ["MoreOptions", "TrainKeywords", "initial_settings", "train"]

# Extra content that training writes itself.
OWN_EXTRA = ["reading", "report", "holdout", "final", "checkpoint", "schema", "columns", "certificate", "interval"]
# Further options that must be the same to resume.
RESUMED = "interval", "by", "fallback", "features", "class_weight"
NAMED_BYTES, NAMED_ROWS = 1 << 26, 1 << 20  # of tables whose features have names by default


@dataclass(frozen=True)
class MoreOptions:
    """Options of :func:`train` that fewer people use, which it takes by name.

    Parameters
    ----------
    copy : train a copy of the model to continue from; False trains the given one in place, which saves memory
    checkpoint_every : number of rows between checkpoints, which are written at the end of a block
    cluster : reads and parses files elsewhere, such as :class:`forel.ray.RayWorkers` on a Ray cluster, and with ``by``
        learns models there, which does not change the result; None for this process
    interval : the fraction of labels that intervals around predicted numbers should cover, such as 0.9, for
        ``predict(..., interval=0.9)``; None for none, or that of the model to continue from
    by : train a model for each value of this column, each as on its rows alone; their metrics are the first of
        ``Model.training.slices``. In VW text, the column is a namespace, or "tag"
    fallback : with ``by``, also train a model on all rows, for keys that were not in the data
    features : what experts of the default mixture learn from tables: "linear" for numbers and categories as they are;
        "curves" for further experts on columns of numbers as piecewise-linear curves; "pairs" for those on curves and
        products of two columns; "auto" for "pairs" where there are columns of numbers and enough rows
    class_weight : "balanced" to let rare classes count as much as common ones; probabilities are then those of classes
        that are equally frequent. None for rows as they are
    """

    copy: bool = True
    checkpoint_every: int = 1_000_000
    cluster: Workers | None = None
    interval: float | None = None
    by: str | None = None
    fallback: bool = False
    features: Features = DEFAULT
    class_weight: str | None = None


class TrainKeywords(OtherReadKeywords, total=False):
    """Further keywords of :func:`train`, for type checkers: those of :class:`MoreOptions`, and read options."""

    copy: bool
    checkpoint_every: int
    cluster: Workers | None
    interval: float | None
    by: str | None
    fallback: bool
    class_weight: str | None
    features: Features


def train(
    source: Any,
    settings: Settings | None = None,
    *,
    label: str | None = None,
    loss: str | MarginLoss | Function | None = None,
    format: str | None = None,
    bits: int | None = None,
    importance: str | None = None,
    classes: int | str | Iterable[str] | None = None,
    keep: Iterable[str] | None = None,
    ignore: Iterable[str] | None = None,
    interactions: Iterable[Any] | None = None,
    text: Iterable[str] | None = None,
    names: bool | Names | None = None,
    passes: int = 1,
    holdout: int = 0,
    holdout_after: int | None = None,
    shuffle: int | None = None,
    certificate: bool = False,
    fixed_share: float | None = None,
    model: Model | Path | None = None,
    threads: int | None = None,
    progress: Callable[[Progress], None] | bool | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    options: ReadOptions | None = None,
    **more: Unpack[TrainKeywords],
) -> Model:
    """Train a model on a source, in constant memory.

    Parameters
    ----------
    source : as in :func:`forel.data.read`: paths, patterns, "-", file objects, tables, arrays, Ray datasets, dicts
    settings : loss, algorithm and hyperparameters; several values of one are mixed; None for those of
        :func:`forel.learner.grid.default_grid`
    loss : of the default settings, such as "squared" for regression or "poisson" for counts; None for log-loss
    label, format, bits, importance, classes, keep, ignore, interactions, text, names : read options, as in
        :class:`forel.data.ReadOptions`; tables of up to 64 MB or a million rows have names by default
    passes : number of passes over the source
    holdout : hold out every n-th row of the source, which is predicted but never learned from; 0 for none
    holdout_after : or hold out all rows of the source after the first n
    shuffle : seed of a random order of the rows, by a temporary file in bounded memory; None for their own order
    certificate : keep the sums that a certificate needs
    fixed_share : of a mixture for drifting streams, as ``share`` in :class:`forel.learner.learner.Learner`
    model : a model to continue from, with its settings and read options: a path, or the result of :func:`forel.load` or
        of this function
    threads : number of parser threads, which does not change the result; None for a default
    progress : called after each block; None for a bar in notebooks, True for one on terminals as well, False for none.
        A function with the attribute ``reads_model = False`` allows a mixture to learn the next block meanwhile
    checkpoint : file for the model and the state of the run, from which an interrupted run resumes; removed when the
        trained model is saved
    resume : resume from the checkpoint if it exists; options and files must be the same, and the model is bitwise the
        same as without the interruption
    options : read options to start from
    more : those of :class:`MoreOptions`, and read options by name

    Labels that come sorted, or that follow one another, cause a
    :class:`forel.training.label_order.LabelOrderWarning`: learning in order, a model forgets the class that came first,
    and losses say how well the stream is followed, not how good the final model is.

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
    >>> train(clicks, lable="click")
    Traceback (most recent call last):
    TypeError: train: got the unknown argument 'lable'; did you mean 'label'?
    """
    reading = {
        "label": label, "format": format, "bits": bits, "importance": importance, "classes": classes, "keep": keep,
        "ignore": ignore, "interactions": interactions, "text": text, "names": names,
    }  # fmt: skip
    others, further = _split(more)
    start = None if model is None else as_model(model)
    settings = initial_settings(settings, loss, start, certificate, fixed_share)
    chosen = _options(start, options, {**reading, **further})
    if settings.loss_function.joint and chosen.classes is None:
        chosen = chosen.updated({"classes": "auto"})
    if names is None and start is None and others.by is None and _is_small_table(source, chosen):
        chosen = chosen.updated({"names": True})
    whole("checkpoint_every", others.checkpoint_every, low=1)
    rule = Holdout(holdout, holdout_after) if holdout or holdout_after is not None else None
    number = whole("passes", passes, low=1)
    if others.fallback and others.by is None:
        raise refuse("fallback", True, "none without by (--by)")
    checked_features(others.features)
    with ExitStack() as stack:
        observe = stack.enter_context(watching(progress, source, number))
        if others.by is not None:
            _check_by(others, shuffle, start)
            stack.enter_context(naming_key("by", others.by))
            chosen = chosen.updated({"slices": tuple(dict.fromkeys((others.by, *chosen.slices)))})
        seed = None if shuffle is None else whole("shuffle", shuffle)
        kept = _names(chosen, names, start, others.copy)
        source_passes = Passes(source, chosen, number, threads, others.cluster, seed, kept, others.by)
        stack.enter_context(source_passes)
        if start is not None:
            certificate, fixed_share = start.learner.certified, start.learner.share
        if checkpoint is not None:
            stack.enter_context(exclusive_lock(checkpoint))
        job = _Job(
            source_passes, settings, rule, others, start, observe, certificate, fixed_share, checkpoint, resume
        )  # fmt: skip
        return job.run()


def _split(more: Mapping[str, Any]) -> tuple[MoreOptions, dict[str, Any]]:
    """Return options of runs and read options; raise for others, with a suggestion."""
    runs = {field.name for field in fields(MoreOptions)}
    reading = {field.name for field in fields(ReadOptions)}
    for name in more.keys() - runs - reading:
        if name in {field.name for field in fields(Settings)}:
            raise refuse(name, more[name], f"it within settings: Settings({name}=...)")
        similar = get_close_matches(name, [*signature(train).parameters, *runs, *reading], 1)
        hint = f"; did you mean {similar[0]!r}?" if similar else ""
        raise TypeError(f"train: got the unknown argument {name!r}{hint}")
    return (
        MoreOptions(**{name: value for name, value in more.items() if name in runs}),
        {name: value for name, value in more.items() if name in reading},
    )


def _check_by(others: MoreOptions, shuffle: int | None, start: Model | None) -> None:
    """Refuse what is about one model, trained on the rows of one key."""
    one_model = {
        "shuffle": shuffle, "model": None if start is None else "a model", "class_weight": others.class_weight,
        "features": others.features if others.features in ("curves", "pairs") else None,
    }  # fmt: skip
    for name, value in one_model.items():
        if value is not None:
            raise refuse(name, value, "none with by (--by); it is for one model, trained on the rows of one key")


def _is_small_table(source: Any, options: ReadOptions) -> bool:
    """Return whether a source has columns, and so few bytes or rows that names of features cost little."""
    if not (options.label or isinstance(source, tuple)) or options.follow or options.entry_names:
        return False
    parts = single_sources(source)
    if all(isinstance(one, str) for one in parts):
        return all(map(is_file, parts)) and sum(file_state(one)[0] for one in parts) <= NAMED_BYTES
    rows = sizes(source)[1]
    return rows is not None and rows <= NAMED_ROWS


def _names(options: ReadOptions, names: bool | Names | None, start: Model | None, copy: bool) -> Names | None:
    """Return the table that names are recorded in; None if they are not; a stored model keeps its names."""
    if start is None or start.names is None:
        return names_for(options, names)
    return names_for(options, deepcopy(start.names) if copy else start.names)


def initial_settings(
    settings: Settings | None,
    loss: str | MarginLoss | Function | None,
    start: Model | None,
    certified: bool = False,
    share: float | None = None,
) -> Settings:
    """Return the settings of a run: ``settings``, the default ones of a loss, or those of the model to continue.

    Raises if the other arguments do not match the stored model.

    >>> initial_settings(None, "squared", None).loss
    'squared'
    >>> initial_settings(Settings(), "squared", None)
    Traceback (most recent call last):
    ValueError: loss: got 'squared', expected None with settings: Settings(loss='squared', ...)
    """
    if not isinstance(settings, Settings | None):
        column = f"; label={settings!r} names a column of labels" if isinstance(settings, str) else ""
        expected = f"Settings(...) or None; labels come with their rows, as (X, y){column}"
        raise refuse("settings", type(settings).__name__, expected)
    if loss is not None and settings is not None:
        raise refuse("loss", loss, f"None with settings: Settings(loss={loss!r}, ...)")
    if start is None:
        return settings or default_grid(loss="logistic" if loss is None else loss)
    if loss is not None:
        raise refuse("loss", loss, "None: training continues with the model's settings")
    model: Any = start.learner
    if isinstance(model, ServingModel):
        raise refuse("model", "a serving model", "a complete learner")
    if isinstance(model, KeyedModels):
        raise refuse("model", f"models by {model.by}", ONE_KEY)
    stored: Settings = model.settings
    if settings is not None and settings != stored:
        name = next(f.name for f in fields(stored) if getattr(settings, f.name) != getattr(stored, f.name))
        expected = f"{stored.describe(name)}: training continues with the model's settings"
        raise refuse(name, getattr(settings, name), expected)
    if share is not None and share != model.share:
        raise refuse("fixed_share", share, f"{model.share}: training continues with the model's share")
    if certified and not model.certified:
        raise refuse("certificate", certified, "False: the model was not certified from its first row on")
    return stored


def _options(start: Model | None, options: ReadOptions | None, keywords: Mapping[str, Any]) -> ReadOptions:
    """Return the options to train with: those given, or of the model to continue, updated."""
    if options is not None and start is not None:
        raise refuse("options", "read options", "none with a model, which has its own; give those that differ by name")
    if start is None:
        return (options or ReadOptions()).updated(keywords)
    found = start.options(**keywords)
    return found if start.names is None else found.updated({"names": True})


def learn_blocks(model: Any, several: bool) -> Learn:
    """Return the function that lets a model, or the models by key, learn a block; ``several`` classes or one margin."""

    def learn(block: Block, again: bool) -> Callable[[], NDArray[Any]]:
        if isinstance(model, Learner):
            rows = CoalescedRows(*block.rows)
            finish = model.begin(rows, block.labels, block.importance, block.held_out, again)
        else:
            finish = model.begin(block, again)
        return finish if several else lambda: finish()[:, 0]

    return learn


@dataclass
class _Job:
    """Composes a run of one model, or of models by key, and its result."""

    passes: Passes
    settings: Settings
    rule: Holdout | None
    others: MoreOptions
    start: Model | None
    callback: Callable[[Progress], None] | None
    certified: bool
    share: float | None
    checkpoint: Path | None
    resume: bool
    model: Any = field(init=False)

    def run(self) -> Model:
        """Train."""
        found = self._found()
        if found is None:
            begun = self._begin()
        else:
            self.model, self.passes.names, begun = found.learner, found.names, None
            restore(found, [self.passes], self.checkpoint or "")
        self.learner, cluster = self.model, cast(Any, self.others.cluster)
        concurrent = self.others.by is not None and cluster is not None
        if concurrent:
            self.learner = cluster.learners(self.model)
        elif self.others.by is None:
            # A growing file may pause for long, and what was learned before is shown.
            alone = self.passes.threads == 0 or self.passes.options.follow
            concurrent = self.model.mixture is not None and not alone and available_cores() > 1
        learn = learn_blocks(self.learner, self.model.classes is not None)
        run = Run(self.passes, learn, self._transforms(), self._observers(), concurrent, begun=begun)
        self.parts = run.parts
        for one in run.observers:
            if isinstance(one, Checkpoints):
                one.run = run
        if found is not None:
            run.place = restore(found, run.parts, self.checkpoint or "")
        return self._result(run.finish())

    def _found(self) -> Content | None:
        """Return the checkpoint to resume from; None for a new run."""
        if self.checkpoint is None:
            return None
        held_out = self.rule or Holdout()
        self.fingerprint = {
            **self.passes.fingerprint,
            "holdout": held_out.every,
            "holdout_after": held_out.after,
            "model": start_fingerprint(self.start),
            "certificate": self.certified,
            "settings": settings_to_json(self.settings),
            "fixed_share": self.share,
            **{name: getattr(self.others, name) for name in RESUMED},
        }
        if not (self.resume and os.path.exists(self.checkpoint)):
            return None
        return open_checkpoint(self.checkpoint, self.fingerprint, user_defined_loss(self.settings))

    def _begin(self) -> Iterator[Block]:
        """Make the model, for which the first blocks may be read; return all blocks of the first pass."""
        begun = self.passes.blocks(1)
        count, begun = (None, begun) if self.start else count_classes(self.passes, self.settings, begun)
        if self.certified and count is not None and not self.settings.loss_function.joint:
            raise refuse("certificate", True, "False for classes one against the rest; use loss='softmax'")
        slots, by = 1 << self.passes.options.bits, self.others.by
        start = None if self.start is None else self.start.learner
        choice = self.others.features if by is None else "linear"
        curves, begun = curves_of_source(choice, self.passes, begun, self.rule, self.settings, count, start)
        if start is None:
            settings = self.settings if count is None else without_filters(self.settings)
            features = slots if by is None else 1
            self.model = Learner(features, settings, count, certified=self.certified, share=self.share, curves=curves)
        else:
            # Settings are shared: kernels identify a user-defined loss by identity.
            self.model = deepcopy(start, {id(self.settings): self.settings}) if self.others.copy else start
        if by is not None:
            self.model = KeyedModels(by, slots, self.model, self.others.fallback)
        return begun

    def _transforms(self) -> list[Transform]:
        """Return what changes blocks before they are learned."""
        start, rule = self.start, self.others.class_weight
        if rule is not None and label_kind(self.settings) == "number":
            raise refuse("class_weight", rule, "none for a regression")
        labels = EncodeLabels(self.settings, self.model.classes, self.passes, start is not None)
        before, rows = ({}, 0) if start is None else (start.extra.get("schema", {}), start.learner.rounds)
        self.schema = SchemaOfRun(self.passes, before, rows)
        balanced = [] if rule is None else [BalancedClasses(rule, self.model.classes)]
        held_out = [] if self.rule is None else [self.rule]
        return [labels, *held_out, *balanced, self.schema]

    def _observers(self) -> list[Observer]:
        """Return what sees blocks after they were learned."""
        start, model, shuffled = self.start, self.model, self.passes.shuffle is not None
        self.new_metrics = partial(metrics_for, self.settings, model, self.passes.classes.names)
        self.measures = Measures(self.new_metrics)
        self.slices = self.order = self.said = self.kept = self.proof = None
        found: list[Observer] = [MemoryLimit(), self.measures]
        if columns := self.passes.options.slices:
            self.slices = Slices(columns, self.measures)
            found.append(self.slices)
        if self.others.by is None:
            self.order, self.said = LabelOrder(shuffled), self._statements()
            found += [self.order, self.said]
            if self.others.class_weight is not None:
                # Intervals of average losses need importances that are known before labels.
                self.said.loss = None
                for one in self.slices.columns if self.slices else ():
                    one.log = False
            # Rows at the end of an ordered stream are predicted by the final model in any case.
            if self.rule is not None and (self.rule.every or shuffled):
                self.kept = HeldOutRows()
                found.append(self.kept)
            if model.certified:
                sums = CertificateSums() if start is None else start.learner.snapshot()
                reweighted = self.others.class_weight is not None
                self.proof = CertificateOfRun(model, self.measures, sums, self.passes.names, reweighted)
                found.append(self.proof)
        if self.callback is not None:
            found.append(Callback(self.callback, self._progress))
        if self.checkpoint is not None:
            every, extra = self.others.checkpoint_every, lambda: self.extra
            found.append(Checkpoints(self.checkpoint, every, self.fingerprint, self._collected, extra, self.passes))
        return found

    def _statements(self) -> Statements:
        """Return what is said at any moment; intervals continue those of the model to start from."""
        level = self.others.interval
        coverage = None if self.start is None else coverage_of(self.start.extra, level)
        coverage = coverage if coverage is not None or level is None else Coverage(level)
        ordered, several = self.passes.shuffle is None, self.model.classes is not None
        return Statements(self.settings, several, coverage, ordered, 1 << self.passes.options.bits, self.measures)

    def _collected(self) -> Any:
        """Return the model after the rows that were learned so far."""
        return self.model if self.others.by is None else self.learner.collect()

    @property
    def _classes(self) -> tuple[str, ...]:
        """The names of several classes."""
        count = self.model.classes
        return () if count is None else padded_names(self.passes.classes.names, count)

    def _progress(self, step: Step) -> Progress:
        """Return what a callback receives after a block."""
        place, measures = step.place, self.measures
        return Progress(
            place.pass_number, place.rows, place.entries, place.bytes, measures.progressive, measures.holdout,
            step.block, step.margins, self.model, self._classes,
        )  # fmt: skip

    @property
    def extra(self) -> dict[str, Any]:
        """The content to store with the model at any moment, and that of the model that training continues from.

        Read options have the kinds of columns and the classes that were found.
        """
        before = {} if self.start is None else self.start.extra
        found = {"kinds": self.passes.kinds.known, "classes": list(self._classes)}
        reading = {**self.passes.options.stored, **{name: value for name, value in found.items() if value}}
        others = {name: value for name, value in before.items() if name not in OWN_EXTRA}
        return {**others, "reading": reading, **{k: v for part in self.parts for k, v in part.extra().items()}}

    def _result(self, place: Place) -> Model:
        """Return the model with its metrics, and warn of what a person should know."""
        model, reports, options = self._collected(), self.measures.reports(), self.passes.options
        holdout = None if self.rule is None else self.measures.last_holdout.report()
        floor, extra = None if self.proof is None else self.proof.floor, self.extra
        columns, means = list[ColumnSpread](), None
        if self.others.by is None:
            sample, named = self.schema.sample, column_of(self.passes.names, extra.get("schema", {}), options.bits)
            columns, means = column_spreads(sample, model, named), moments(sample)
        training = Training(
            report=reports[0],
            holdout=holdout,
            final=None if self.kept is None else self.kept.report(model, self.new_metrics()),
            passes=reports,
            rows=place.first_pass[0],
            entries=place.first_pass[1],
            seconds=place.seconds,
            compiling=place.compiling,
            problems=self.passes.problems,
            certificate=None if floor is None else floor.summary(),
            frontier=None if floor is None else floor.frontier(),
            floor=None if floor is None else floor.to_json(),
            rounds=model.rounds,
            columns=tuple(columns),
            moments=means,
            statements=self.said,
            slices=() if self.slices is None else self.slices.tables(),
            label_order=self.order,
            checkpoint=self.checkpoint,
            class_weight=self.others.class_weight,
        )
        absent = options.positive is not None and self.start is None and reports[0].mean_label in (0.0, -1.0)
        found = [
            (self.rule.warning(training.rows) if self.rule and holdout and not holdout.rows else None, UserWarning),
            (f"positive: got {options.positive!r}, which no row has as its label" if absent else None, UserWarning),
            (None if self.order is None else self.order.warning(model.classes), LabelOrderWarning),
            (training.leak, LeakWarning),
        ]
        for message, category in found:
            if message is not None:
                warnings.warn(message, category, stacklevel=4)
        return Model.trained(model, training, self.passes.names, extra)
