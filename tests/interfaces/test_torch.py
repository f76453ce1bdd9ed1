"""PyTorch optimizers are the theory engine's algorithms, TensorFlow's documented formula, and good optimizers."""

import copy
import io

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is an extra: pip install 'forel[torch]'")

from forel.losses import Linear  # noqa: E402
from forel.theory.algorithms import FTRL, ad_click, adagrad_dual_averaging  # noqa: E402
from forel.theory.geometries import Diagonal  # noqa: E402
from forel.theory.penalties import ElasticNet  # noqa: E402
from forel.theory.rates import DiagonalAdaGrad  # noqa: E402
from forel.torch import AdaGradDualAveraging, FTRLProximal  # noqa: E402

PENALTIES = [(0.0, 0.0), (0.7, 0.0), (0.7, 0.3)]
KINDS = [FTRLProximal, AdaGradDualAveraging]


def gradients(rounds=200, n=6):
    """Sparse gradients of very different sizes."""
    rng = np.random.default_rng(0)
    g = rng.normal(size=(rounds, n)) * np.logspace(-3, 2, n)
    return g * (rng.random((rounds, n)) < 0.5)


def run(kind, grads, start=0.0, dtype=torch.float64, sparse=False, **options):
    x = torch.full((grads.shape[1],), start, dtype=dtype, requires_grad=True)
    optimizer, points = kind([x], **options), []
    for g in grads:
        x.grad = torch.tensor(g, dtype=dtype)
        if sparse:
            x.grad = x.grad.to_sparse()
        optimizer.step()
        points.append(x.detach().numpy().copy())
    return np.array(points)


def engine(algorithm, grads):
    state, points = algorithm.init(grads.shape[1]), []
    for g in grads:
        state = algorithm.update(state, Linear(g))
        points.append(algorithm.play(state))
    return np.array(points)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("l1", "l2"), PENALTIES)
def test_iterates_are_those_of_the_theory_engine(l1, l2, sparse):
    grads = gradients()
    proximal = run(FTRLProximal, grads, sparse=sparse, lr=0.3, beta=0.5, l1=l1, l2=l2)
    np.testing.assert_allclose(proximal, engine(ad_click(0.3, 0.5, l1, l2), grads), rtol=1e-9, atol=1e-12)
    averaging = run(AdaGradDualAveraging, grads, sparse=sparse, lr=0.3, offset=2.0, l1=l1, l2=l2)
    reference = adagrad_dual_averaging(0.3, 2.0, ElasticNet(l1, l2))
    np.testing.assert_allclose(averaging, engine(reference, grads), rtol=1e-9, atol=1e-12)
    single = run(FTRLProximal, grads, dtype=torch.float32, sparse=sparse, lr=0.3, beta=0.5, l1=l1, l2=l2)
    np.testing.assert_allclose(single, proximal, rtol=1e-3, atol=1e-4)
    assert ((single == 0) == (proximal == 0)).mean() > 0.99
    assert (proximal[50:] == 0).any() == (l1 > 0)


def test_an_offset_is_that_of_the_rate():
    grads = gradients()
    reference = FTRL(DiagonalAdaGrad(0.3, offset=2.0, beta=0.5), Diagonal(), "played", penalty=ElasticNet(0.1))
    found = run(FTRLProximal, grads, lr=0.3, beta=0.5, l1=0.1, offset=2.0)
    np.testing.assert_allclose(found, engine(reference, grads), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("doubled", [False, True])
def test_steps_are_those_of_tensorflow_with_the_named_differences(doubled):
    """Its documented formula, and that of its code, which adds twice the number it calls the strength of L2."""
    alpha, beta, lambda_1, lambda_2, accumulator, grads = 0.3, 0.5, 0.7, 0.2, 0.1, gradients()
    w, z, n, points = np.zeros(grads.shape[1]), 0.0, accumulator, []
    for g in grads:
        n, previous = n + g**2, n
        z = z + g - (n**0.5 - previous**0.5) / alpha * w
        if doubled:
            w = (np.clip(z, -lambda_1, lambda_1) - z) / (n**0.5 / alpha + 2 * (lambda_2 + beta / (2 * alpha)))
        else:
            shrunk = (np.sign(z) * lambda_1 - z) / ((beta + np.sqrt(n)) / alpha + lambda_2)
            w = np.where(np.abs(z) < lambda_1, 0.0, shrunk)
        points.append(w)
    options = {"lr": alpha, "beta": beta, "l1": lambda_1, "l2": lambda_2 * (1 + doubled), "offset": accumulator**0.5}
    np.testing.assert_allclose(run(FTRLProximal, grads, **options), points, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_from_any_start_the_steps_are_those_from_zero_shifted(kind):
    grads = gradients()
    np.testing.assert_allclose(run(kind, grads, start=5.0), 5 + run(kind, grads), rtol=1e-9)


def test_a_coordinate_that_nothing_determines_stays():
    grads = np.array([[0.0, 1.0], [0.0, -2.0]])
    assert (run(FTRLProximal, grads, start=3.0, beta=0.0)[:, 0] == 3).all()


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_steps_of_an_embedding_are_the_dense_steps(kind):
    def train(sparse):
        torch.manual_seed(0)
        model = torch.nn.Embedding(20, 3, sparse=sparse)
        torch.nn.init.zeros_(model.weight)
        optimizer = kind(model.parameters(), lr=0.5, l1=0.05)
        for step in range(30):
            optimizer.param_groups[0]["lr"] = 0.5 if step < 15 else 0.2
            optimizer.zero_grad()
            rows = torch.randint(0, 20, (4,))  # with repetitions
            (model(rows) - rows[:, None] / 20).square().sum().backward()
            optimizer.step()
        return model.weight.detach()

    dense, sparse = train(False), train(True)
    assert torch.equal(dense == 0, sparse == 0)
    torch.testing.assert_close(dense, sparse, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_state_is_saved_and_closures_are_called(kind):
    def closure(x, optimizer):
        optimizer.zero_grad()
        loss = (x - torch.arange(4.0)).square().sum()
        loss.backward()
        return loss

    x = torch.zeros(4, requires_grad=True)
    optimizer = kind([{"params": [x], "l1": 0.5}], lr=0.5)
    losses = [optimizer.step(lambda: closure(x, optimizer)).item() for _ in range(100)]
    assert losses[-1] < 0.2 < losses[0] == 14
    file = io.BytesIO()
    torch.save([x, optimizer.state_dict()], file)
    file.seek(0)
    y, stored = torch.load(file)
    resumed = kind([{"params": [y], "l1": 0.5}], lr=0.5)
    resumed.load_state_dict(stored)
    deep = copy.deepcopy(resumed).state_dict()["state"][0]["z"]
    assert deep.equal(optimizer.state[x]["z"])
    for parameter, other in ((x, optimizer), (y, resumed)):
        other.step(lambda p=parameter, o=other: closure(p, o))
    assert torch.equal(x, y)


def test_logistic_regression_is_sparse_and_accurate():
    torch.manual_seed(1)
    inputs = torch.randn(4000, 50)
    truth = torch.zeros(50)
    truth[:5] = torch.tensor([2.0, -2.0, 1.0, -1.0, 1.5])
    labels = torch.bernoulli(torch.sigmoid(inputs @ truth))
    model = torch.nn.Linear(50, 1)
    torch.nn.init.zeros_(model.weight)
    optimizer = FTRLProximal([{"params": [model.weight], "l1": 60.0}, {"params": [model.bias]}], lr=0.1)
    for x, y in zip(inputs, labels, strict=True):
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(model(x)[0], y).backward()
        optimizer.step()
    weights = model.weight.detach()[0]
    assert (weights[:5] * truth[:5] > 0).all()
    assert (weights[5:] == 0).sum() >= 40


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 0.0}, "lr: got 0.0, expected a positive number"),
        ({"l1": -1.0}, "l1: got -1.0, expected a number of at least 0"),
        ({"beta": float("nan")}, "beta: got nan"),
    ],
)
def test_options_are_validated(options, message):
    with pytest.raises(ValueError, match=message):
        FTRLProximal([torch.zeros(1, requires_grad=True)], **options)


def test_a_rate_that_grows_and_half_precision_are_refused():
    x = torch.zeros(1, requires_grad=True)
    optimizer = FTRLProximal([x], lr=0.1)
    x.grad = torch.ones(1)
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.2
    with pytest.raises(ValueError, match=r"lr: got 0\.2 after 0\.1, expected one that never grows"):
        optimizer.step()
    half = torch.zeros(1, dtype=torch.bfloat16, requires_grad=True)
    half.grad = torch.ones(1, dtype=torch.bfloat16)
    with pytest.raises(TypeError, match="expected float32 or float64"):
        FTRLProximal([half]).step()
