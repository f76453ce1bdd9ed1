"""Model files: complete learners that can continue, and small models for predictions.

=========================  =======================================================================================
``save(path, model)``      write the complete state; a loaded learner continues bit for bit
``serving_model(model)``   the nonzero weights as float32 or float16, to save or to predict with
``load(path)``             read either, with the ``extra`` content and the ``names`` of slots saved with it
=========================  =======================================================================================

Files are in the safetensors format: numbers and text, no code. A file is written under a temporary name, synced and
renamed, so that an incomplete file never replaces a complete one.

>>> import pathlib, tempfile
>>> from forel.learner.learner import Learner
>>> from forel.learner.settings import Settings
>>> path = pathlib.Path(tempfile.mkdtemp()) / "model.forel"
>>> model = Learner(2, Settings(alpha=1.0))
>>> _ = model.learn([[1.0, 0.0], [0.0, 1.0]], [1, 0])
>>> save(path, model, extra={"bits": 1})
>>> stored = load(path)
>>> stored.model.rounds, stored.extra
(2, {'bits': 1})
>>> save(path, serving_model(model, dtype="float16"))
>>> bool(load(path).model.predict([[1.0, 0.0]])[0, 0] > 0.5)
True
"""

from forel.store.header import ModelFileError
from forel.store.saving import Stored, load, save
from forel.store.serving import ServingModel, serving_model
from forel.store.serving_choice import ServingChoice, choose_serving

__all__ = [
    "ModelFileError", "ServingChoice", "ServingModel", "Stored", "choose_serving", "load", "save", "serving_model",
]  # fmt: skip
