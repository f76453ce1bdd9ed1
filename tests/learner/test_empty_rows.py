"""Rows without coordinates in certified kernels, which sample a coordinate of every row."""

import numpy as np
import pytest
from scipy import sparse

from forel.learner.kernels import kernel
from forel.learner.learner import Learner
from forel.learner.settings import Settings


@pytest.mark.parametrize("alpha", [0.3, (0.1, 0.3)])
@pytest.mark.parametrize("bias", [False, True])
def test_empty_rows_add_only_the_square_of_the_bias(alpha, bias, monkeypatch):
    monkeypatch.setattr(kernel, "kernel", kernel.uncompiled_kernel)
    model = Learner(3, Settings(alpha=alpha, bias=bias), dtype=np.float64, certified=True, mixed=False)
    model.learn(np.eye(3), [1, 0, 1])
    before = model.state.sums[3].copy()
    margin = model.progress(sparse.csr_array((1, 3)), [1])[0]
    added = model.state.sums[3] - before
    if not bias:
        assert not added.any()
        return
    gradients = model.state.numbers[3, model.state.layout.gradient_part]
    assert added == pytest.approx(gradients**2, rel=1e-12)
    assert np.isfinite(margin).all()
