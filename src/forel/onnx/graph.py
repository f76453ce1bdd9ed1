"""Graphs of linear models: a margin for each class as a sum over inputs, and the link to predictions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forel.losses.links import Exponential, Link, SoftmaxLink

if TYPE_CHECKING:
    import onnx

__all__ = ["Graph"]

OPSET, ML_OPSET = 17, 3  # supported by runtimes since 2022
OPERATORS = {"probability": "Sigmoid", "exponential": "Exp"}  # of links; margins of others are the predictions


class Graph:
    """The inputs, nodes and constants of a graph whose margins are added input by input.

    Parameters
    ----------
    lanes : number of margins
    """

    def __init__(self, lanes: int) -> None:
        try:
            from onnx import TensorProto, helper, numpy_helper
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError("to_onnx needs onnx; install the extra: pip install 'forel[onnx]'") from missing

        self._helper, self._types, self._from_array = helper, TensorProto, numpy_helper.from_array
        self.lanes = lanes
        self._inputs: list[Any] = []
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._parts: list[str] = []

    def add_matrix(self, name: str, weights: NDArray[Any], limits: NDArray[Any]) -> None:
        """Add an input of several numbers that are clipped to limits, with a row of weights for each."""
        self._input(name, self._types.FLOAT, len(weights))
        self._parts.append(self._node("MatMul", self._clipped(name, limits), self._constant(weights)))

    def add_number(self, name: str, weights: NDArray[Any], limits: NDArray[Any]) -> None:
        """Add an input of one number that is clipped to a limit, which counts as 0 where it is NaN."""
        self._input(name, self._types.FLOAT, 1)
        zero = self._constant(np.zeros((1, 1)))
        present = self._node("Where", self._node("IsNaN", name), zero, name)
        self._parts.append(self._node("MatMul", self._clipped(present, limits), self._constant(weights)))

    def add_category(self, name: str, categories: Sequence[str], weights: NDArray[Any]) -> None:
        """Add an input of one string, with a row of weights for each category; others have the weight 0."""
        self._input(name, self._types.STRING, 1)
        if not categories:
            return
        table = self._constant(np.vstack([weights, np.zeros((1, self.lanes))]))
        keys: Any = {"keys_strings": list(categories), "values_int64s": list(range(len(categories)))}
        place = self._node("LabelEncoder", name, domain="ai.onnx.ml", default_int64=len(categories), **keys)
        found = self._node("Gather", table, place, axis=0)  # rows, 1, margins
        self._parts.append(self._node("Squeeze", found, self._constant(np.array([1], np.int64))))

    def finish(
        self, bias: NDArray[Any], limits: tuple[float, float] | None, link: Link, classes: Sequence[str] | None
    ) -> "onnx.ModelProto":
        """Return the model: margins plus bias, clipped to limits, and predictions by a link."""
        total = self._constant(np.reshape(bias, (1, self.lanes)))
        for part in self._parts:
            total = self._node("Add", total, part)
        if limits is not None:
            total = self._node("Clip", total, *(self._constant(np.array(limit)) for limit in limits))
        outputs = self._classes(total, link, classes) if classes is not None else self._number(total, link)
        helper = self._helper
        graph = helper.make_graph(self._nodes, "forel", self._inputs, outputs, self._constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model: onnx.ModelProto = helper.make_model(graph, producer_name="forel", opset_imports=opsets, ir_version=8)
        return model

    def _number(self, margins: str, link: Link) -> list[Any]:
        if isinstance(link, Exponential):
            margins = self._node("Min", margins, self._constant(np.float32(link.cap_in(np.float32))))
        self._node(OPERATORS.get(link.name, "Identity"), margins, output="prediction")
        return [self._output("prediction", self._types.FLOAT, [None, self.lanes])]

    def _classes(self, margins: str, link: Link, classes: Sequence[str]) -> list[Any]:
        if isinstance(link, SoftmaxLink):
            self._node("Softmax", margins, axis=1, output="probabilities")
        else:
            # The shares of one class against the rest, from logarithms, which do not underflow.
            log = self._node("Neg", self._node("Softplus", self._node("Neg", margins)))
            self._node("Softmax", log, axis=1, output="probabilities")
        best = self._node("ArgMax", margins, axis=1, keepdims=0)
        keys: Any = {"keys_int64s": list(range(len(classes))), "values_strings": list(classes)}
        self._node("LabelEncoder", best, domain="ai.onnx.ml", output="label", **keys)
        shares = self._output("probabilities", self._types.FLOAT, [None, self.lanes])
        return [shares, self._output("label", self._types.STRING, [None])]

    def _input(self, name: str, kind: int, width: int) -> None:
        self._inputs.append(self._helper.make_tensor_value_info(name, kind, [None, width]))

    def _output(self, name: str, kind: int, shape: list[int | None]) -> Any:
        return self._helper.make_tensor_value_info(name, kind, shape)

    def _clipped(self, name: str, limits: NDArray[Any]) -> str:
        """Return numbers between limits and their negatives, a limit for each column; the same ones for infinity."""
        if np.isinf(limits).all():
            return name
        limits = np.reshape(limits, (1, -1))
        return self._node("Min", self._node("Max", name, self._constant(-limits)), self._constant(limits))

    def _constant(self, values: Any) -> str:
        array = np.asarray(values)
        array = array if array.dtype == np.int64 else array.astype(np.float32)
        name = f"constant {len(self._constants)}"
        self._constants.append(self._from_array(array, name))
        return name

    def _node(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        name = output or f"value {len(self._nodes)}"
        self._nodes.append(self._helper.make_node(operator, list(inputs), [name], **attributes))
        return name
