"""The protocol of learners: the interface of models and mixtures to training, model files and estimators."""

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forel.learner.certificate import Certificate
from forel.learner.certificate_sums import CertificateSums
from forel.learner.contributions import MixtureExplanation
from forel.learner.expert_pool import ExpertPool
from forel.learner.guard import Guard
from forel.learner.linear import Linear
from forel.learner.loss_floor import LossFloor
from forel.learner.settings import Settings

if TYPE_CHECKING:
    from forel.experts import Guarantee

__all__ = ["Learner"]


class Learner(Protocol):
    """A linear model that learns online, of one setting or of several that are mixed.

    ``kind`` is its name in model files, and ``options`` are the arguments of its constructor that a file stores in
    addition to those of every learner.
    """

    kind: ClassVar[str]
    options: ClassVar[tuple[str, ...]]
    _guard: Guard

    def learn(self, X: Any, y: ArrayLike, importance: ArrayLike | None = None) -> NDArray[np.float64]:
        """Predict and then learn each row in turn; return the sum of losses before learning."""
        ...

    def progress(
        self, X: Any, y: ArrayLike, importance: ArrayLike | None = None, held_out: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Learn each row in turn, and return margins from before; rows in the mask ``held_out`` are predicted only."""
        ...

    def relearn(
        self, X: Any, y: ArrayLike, importance: ArrayLike | None = None, held_out: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Learn rows of an earlier pass again, and return margins as :meth:`progress` does."""
        ...

    def margins(self, X: Any) -> NDArray[Any]:
        """Return the margins of every row."""
        ...

    def weights_at(self, coordinates: NDArray[np.int64]) -> NDArray[Any]:
        """Return the weights of some coordinates."""
        ...

    def only(self, setting: int | None = None) -> Linear:
        """Return the model of one setting; for None the best one of a mixture, and a model itself."""
        ...

    def certificate(self, lane: int = 0, among: NDArray[np.int64] | None = None) -> Certificate:
        """Return the regret to fixed models, its bound, and lower bounds on their losses."""
        ...

    def snapshot(self) -> CertificateSums:
        """Return the sums of certificates at this moment."""
        ...

    def summary(self, lane: int = 0, since: CertificateSums | None = None, loss: float | None = None) -> str:
        """Return the certificate against all models of at most the norm of the learned one, in a sentence."""
        ...

    def loss_floor(
        self,
        lane: int = 0,
        since: CertificateSums | None = None,
        loss: float | None = None,
    ) -> LossFloor:
        """Return lower bounds on the loss of fixed models by their norm."""
        ...

    def guarantee(self) -> "Guarantee | None":
        """Return the regret of a mixture to its best setting, and the bound on it; None for one model."""
        ...

    def explain(self) -> MixtureExplanation | None:
        """Return what each expert of a mixture contributes; None for one model."""
        ...

    def reset(self) -> None:
        """Return to the state before the first row."""
        ...

    @staticmethod
    def stored_arrays(settings: Settings) -> dict[str, tuple[int, ...] | None]:
        """Return the names and shapes of the arrays in a model file that are not those of the linear models."""
        ...

    def pack(self) -> dict[str, NDArray[np.float64]]:
        """Return the arrays of :meth:`stored_arrays`."""
        ...

    def unpack(self, arrays: dict[str, NDArray[np.float64]]) -> None:
        """Set the state to arrays of a model file."""
        ...

    @property
    def linear(self) -> Linear:
        """The linear models, a lane for each setting and class."""
        ...

    @property
    def settings(self) -> Settings:
        """Loss, algorithm, rate and penalty."""
        ...

    @property
    def features(self) -> int:
        """The number of features."""
        ...

    @property
    def classes(self) -> int | None:
        """The number of classes; None for one margin."""
        ...

    @property
    def lanes(self) -> int:
        """The number of margins of a prediction."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the state."""
        ...

    @property
    def certified(self) -> bool:
        """Whether the sums of certificates are kept."""
        ...

    @property
    def pool(self) -> ExpertPool | None:
        """The experts of a mixture, with their losses; None for one model."""
        ...

    @property
    def share(self) -> float | None:
        """The share of a mixture with fixed share; None without it."""
        ...

    @property
    def joint(self) -> bool:
        """Whether all classes share one loss."""
        ...

    @property
    def softmax_margins(self) -> bool:
        """Whether the probabilities of classes are the softmax of their margins."""
        ...

    @property
    def rounds(self) -> int:
        """The number of rows learned from."""
        ...

    @property
    def weight(self) -> float:
        """The sum of their importances."""
        ...

    @property
    def loss(self) -> Any:
        """The sum of losses, each row before it was learned from; for one model, one number per lane."""
        ...

    @property
    def weights(self) -> NDArray[Any]:
        """The weights, a row for each feature and a column for each lane."""
        ...

    @property
    def bias(self) -> NDArray[Any]:
        """The weight of the constant feature in each lane."""
        ...

    @property
    def seen(self) -> NDArray[np.int64]:
        """The coordinates with a record that is not zero, in order; the bias is ``features``."""
        ...

    @property
    def nonzeros(self) -> int:
        """The number of non-zero weights."""
        ...
