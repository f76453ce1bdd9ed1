"""Losses by name, functions as losses, and links."""

import copy
import math
import pickle

import numpy as np
import pytest

from catalogue import MARGIN_LOSSES
from forel import losses
from forel.learner.kernels import losses as kernels
from forel.learner.settings import Settings
from forel.losses import Choice, Classes, Interval, Logistic, Quantile, Softmax, by_name
from forel.losses.custom import Custom
from forel.losses.links import BY_NAME, Exponential, Identity
from forel.losses.vocabulary import VOCABULARY, built_in, parse_loss, resolve


def margin_and_label(margin, label):
    return abs(margin - label), 1.0 if margin > label else -1.0


def test_the_vocabulary_is_the_catalogue():
    assert {type(loss) for loss in VOCABULARY.values()} == {type(loss) for loss in MARGIN_LOSSES}
    for name, loss in VOCABULARY.items():
        assert loss.name == name
        assert getattr(losses, type(loss).__name__) is type(loss)
        assert loss.joint or callable(getattr(kernels, loss.kernel))


def test_losses_are_given_as_names_objects_or_functions():
    assert resolve("quantile") == Quantile(0.5)
    assert resolve(Quantile(0.9)) == Quantile(0.9)
    assert resolve(margin_and_label) == Custom(margin_and_label)
    assert by_name("quantile", q=0.9) == Quantile(0.9)
    assert built_in(margin_and_label) is None
    assert Settings(Softmax(3)).loss_function == Softmax(3)
    for wrong in ("log", 3, None, lambda m: m):
        with pytest.raises(ValueError, match=r"^loss: got .*, expected one of logistic, hinge"):
            resolve(wrong)


def test_parameters_of_losses_follow_their_names():
    assert parse_loss("quantile") == "quantile"
    assert parse_loss("quantile:0.9") == Quantile(0.9)
    assert parse_loss("huber:2") == losses.Huber(2.0)
    for wrong in ("quantile:", "quantile:high", "logistic:1", "softmax:3", "nosuch:1", ":1"):
        with pytest.raises(ValueError, match=f"^loss: got '{wrong}', expected a number after one of .*quantile"):
            parse_loss(wrong)
    with pytest.raises(ValueError, match=r"^q: got 1.5, expected a number strictly between 0 and 1"):
        parse_loss("quantile:1.5")


def test_settings_store_the_given_loss_and_resolve_it_once():
    settings = Settings("huber")
    assert settings.loss == "huber"
    assert settings.loss_function is settings.loss_function
    for again in (pickle.loads(pickle.dumps(settings)), copy.deepcopy(settings)):
        assert again == settings
        assert again.loss_function == settings.loss_function


def test_attributes_of_a_function_describe_the_loss():
    plain = Custom(margin_and_label)
    assert (plain.title, plain.least, plain.labels) == ("margin_and_label loss", -math.inf, Interval())
    assert (plain.kernel, plain.name, plain.parameter(np.float32)) == (margin_and_label, "margin_and_label", 0.0)
    assert plain([0.0, 2.0], 1.0).tolist() == [1.0, 1.0]
    assert plain.slope([0.0, 2.0], 1.0).tolist() == [-1.0, 1.0]

    def described(margin, label):
        return margin_and_label(margin, label)

    described.labels, described.title, described.least = Choice((-1, 1)), "distance", 0.0
    known = Settings(described)
    assert (known.title, known.least, known.signed) == ("distance", 0.0, True)


@pytest.mark.parametrize("loss", MARGIN_LOSSES, ids=lambda loss: type(loss).__name__)
def test_links_to_which_mixtures_clip_are_inverted(loss):
    margins, link = np.array([[-3.0, -0.5, 3.5], [0.1, 2.0, -2.1]]), loss.link
    assert BY_NAME[link.name].name == link.name
    assert BY_NAME[link.one_vs_rest.name] == link.one_vs_rest or isinstance(link, Exponential)
    if any(link.clipping):
        np.testing.assert_allclose(link.inverse(link(margins)), margins, rtol=1e-12)
    else:
        with pytest.raises(ValueError, match="a mixture does not clip"):
            link.inverse([1.0])


def test_links_compute_in_the_given_dtype():
    margins = np.array([[-1.0, 2.0]])
    for name, link in BY_NAME.items():
        if name not in ("sign", "largest"):
            assert link(margins, np.float32).dtype == np.float32
            assert link(margins.astype(np.float32)).dtype == np.float64
        assert np.array_equal(link(margins.astype(np.int8)), link(margins))
    for dtype in (np.float32, np.float64):
        largest = Exponential()([1e9], dtype)
        assert np.isfinite(largest).all()
        with np.errstate(over="ignore"):
            assert np.isinf(np.exp(np.log(largest) + dtype(1))).all()
    assert not any(Identity(Custom.link.clipping).clipping)


def test_softmax_takes_the_number_of_classes_from_its_margins():
    rng = np.random.default_rng(0)
    margins, labels = rng.normal(size=(5, 4)), rng.integers(0, 4, 5)
    np.testing.assert_array_equal(Softmax()(margins, labels), Softmax(4)(margins, labels))
    np.testing.assert_array_equal(Softmax().slope(margins, labels), Softmax(4).slope(margins, labels))
    assert Softmax().constants(1.0).exp_concavity == 0
    assert Softmax().labels == Classes()
    assert Classes().check("label", [0, 7]).tolist() == [0, 7]
    with pytest.raises(ValueError, match=r"^label: got 0.5, expected a whole number of at least 0$"):
        Classes().check("label", 0.5)


def test_the_exponential_in_float32_ends_at_80():
    with pytest.raises(ValueError, match=r"^cap: got 100.0, expected at most 80 for a model in float32$"):
        losses.Poisson(100.0).parameter(np.float32)
    assert losses.Poisson(100.0).parameter(np.float64) == 100.0
    assert Logistic().parameter(np.float32) == 0.0
