r"""FTRL-Proximal and AdaGrad dual averaging as PyTorch optimizers, with exact zeros.

Both play, in each coordinate, the minimizer of the linearized losses, the penalty and the regularizers so far,

$$x_{t+1} = \arg\min_x\ g_{1:t}x + \lambda_1|x| + \frac{\lambda_2}{2}x^2 + \sum_{s=0}^t\frac{\sigma_s}{2}(x - c_s)^2,$$

with $\sigma_{0:t} = \frac1\eta(\beta + \sqrt{\delta^2 + \sum_{s \le t} g_s^2})$. They differ in the centers alone:
$c_s = x_s$ for FTRL-Proximal, $c_s = x_1$ for dual averaging, and $c_0 = x_1$, the first value of the parameter.
The penalty enters once, not in every round: compare it with the *sum* of the gradients. Gradients may be dense or
sparse (``torch.nn.Embedding(sparse=True)``). A sparse step changes only its rows and equals the dense step, except that
the penalty acts on a row from its first gradient on.
"""

from collections.abc import Callable
from typing import Any

import torch

from forel.validation import non_negative, positive

__all__ = ["AdaGradDualAveraging", "FTRLProximal"]


class _FTRL(torch.optim.Optimizer):
    """The common step; ``proximal`` chooses the centers."""

    proximal: bool

    def __init__(self, params: Any, lr: float, beta: float, l1: float, l2: float, offset: float) -> None:
        super().__init__(params, {"lr": lr, "beta": beta, "l1": l1, "l2": l2, "offset": offset})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with options of their own."""
        options = {**self.defaults, **param_group}
        positive("lr", options["lr"])
        for name in ("beta", "l1", "l2", "offset"):
            non_negative(name, options[name])
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step; a closure evaluates the loss and its gradients first, and its value is returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for x in group["params"]:
                if x.grad is not None:
                    self._update(x, x.grad, group)
        return loss

    def _update(self, x: Any, g: Any, group: dict[str, Any]) -> None:
        lr, beta = float(group["lr"]), group["beta"]
        state = self.state[x]
        if not state:
            if x.dtype not in (torch.float32, torch.float64):
                raise TypeError(f"params: got {x.dtype}, expected float32 or float64, for sums of many squares")
            state["lr"] = lr
            state["squares"] = torch.full_like(x, group["offset"] ** 2)
            state["z"] = -(beta + group["offset"]) / lr * x
            if not self.proximal:
                state["first"] = x.clone()
        z, squares, centers = state["z"], state["squares"], x if self.proximal else state["first"]
        if lr != state["lr"]:
            if lr > state["lr"]:
                raise ValueError(f"lr: got {lr:g} after {state['lr']:g}, expected one that never grows; use no warm-up")
            z.sub_((beta + squares.sqrt()) * centers, alpha=1 / lr - 1 / state["lr"])
            x.copy_(_argmin(x, z, squares, lr, group))
            state["lr"] = lr
        rows: Any = ...
        if g.is_sparse:
            g = g.coalesce()
            rows, g = tuple(g.indices()), g.values()
        before = squares[rows]
        after = before + g * g
        dual = z[rows] + g - (after.sqrt() - before.sqrt()) / lr * centers[rows]
        x[rows], z[rows], squares[rows] = _argmin(x[rows], dual, after, lr, group), dual, after


def _argmin(x: Any, z: Any, squares: Any, lr: float, group: dict[str, Any]) -> Any:
    """The minimizer; where nothing determines it, x."""
    strength = (group["beta"] + squares.sqrt()) / lr + group["l2"]
    return torch.where(strength > 0, (z.clip(-group["l1"], group["l1"]) - z) / strength, x)


class FTRLProximal(_FTRL):
    r"""FTRL-Proximal with a rate for each coordinate: sparse models of the accuracy of gradient descent.

    In each coordinate, with $n$ the sum of squared gradients,
    $\sigma = (\sqrt{\delta^2 + n + g^2} - \sqrt{\delta^2 + n})/\eta$, $z \leftarrow z + g - \sigma x$, and then
    $x = -\mathrm{sign}(z)\max(|z| - \lambda_1, 0) / ((\beta + \sqrt{\delta^2 + n})/\eta + \lambda_2)$.

    TensorFlow's ``Ftrl`` takes the same steps from $x_1 = 0$, with ``offset`` the *root* of its
    ``initial_accumulator_value``, and 0 as the default of its ``beta``. Its documented formula has the same λ2, but its
    code adds twice ``l2_regularization_strength`` to the strength: ``l2`` here is twice that number. From another $x_1$
    it centers $r_0$ at 0 rather than at $x_1$.

    Parameters
    ----------
    params : parameters, or groups of them with options of their own
    lr : η; it may be lowered between steps, but not raised
    beta : β, strength before any gradient: a step moves no coordinate by more than η
    l1, l2 : λ1 and λ2 of the penalty
    offset : δ

    >>> weights = torch.zeros(2, requires_grad=True)
    >>> optimizer = FTRLProximal([weights], lr=1.0, l1=1.0)
    >>> weights.grad = torch.tensor([3.0, -0.5])
    >>> optimizer.step()
    >>> weights.detach()
    tensor([-0.5000,  0.0000])

    Survey: sections 3.4 and 5; McMahan et al., "Ad click prediction" (2013)
    """

    proximal = True

    def __init__(
        self, params: Any, lr: float = 0.1, beta: float = 1.0, l1: float = 0.0, l2: float = 0.0, offset: float = 0.0
    ) -> None:
        super().__init__(params, lr, beta, l1, l2, offset)


class AdaGradDualAveraging(_FTRL):
    r"""AdaGrad dual averaging: every regularizer is centered at the first point.

    In each coordinate, $x = x_1$ shifted by the sum of gradients over the strength, without a penalty
    $x_{t+1} = x_1 - \eta g_{1:t} / \sqrt{\delta^2 + \sum_{s \le t} g_s^2}$. A large L1 penalty finds more zeros than in
    FTRL-Proximal, at more loss.

    Parameters
    ----------
    params : parameters, or groups of them with options of their own
    lr : η, the scale of the comparator; it may be lowered between steps, but not raised
    offset : δ, the largest gradient of a coordinate to expect
    l1, l2 : λ1 and λ2 of the penalty

    >>> weights = torch.ones(1, requires_grad=True)
    >>> optimizer = AdaGradDualAveraging([weights], lr=1.0, offset=3.0)
    >>> weights.grad = torch.tensor([4.0])
    >>> optimizer.step()
    >>> weights.detach()  # 1 - 4/5
    tensor([0.2000])

    Survey: section 3.5
    """

    proximal = False

    def __init__(self, params: Any, lr: float = 0.1, offset: float = 1.0, l1: float = 0.0, l2: float = 0.0) -> None:
        super().__init__(params, lr, 0.0, l1, l2, offset)
