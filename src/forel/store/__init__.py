"""The format of model files: a learner, or the nonzero weights of one, as a header and arrays.

=====================================  ===========================================================================
``write_model(path, learner, extra)``  write the complete state; a learner that is read continues bit for bit
``serving_model(learner)``             the nonzero weights as float32 or float16, to write or to predict with
``read_model(path)``                   read either, with the ``extra`` content and the ``names`` of slots
=====================================  ===========================================================================

Files are in the safetensors format: numbers and text, no code. A file is written under a temporary name, synced and
renamed, so that an incomplete file never replaces a complete one. :func:`forel.load` and :func:`forel.save` are for
models with all that predictions need.

>>> import pathlib, tempfile
>>> from forel.learner.learner import Learner
>>> from forel.learner.settings import Settings
>>> path = pathlib.Path(tempfile.mkdtemp()) / "model.forel"
>>> model = Learner(2, Settings(alpha=1.0))
>>> _ = model.learn([[1.0, 0.0], [0.0, 1.0]], [1, 0])
>>> write_model(path, model, {"bits": 1})
>>> read_model(path).learner.rounds, read_model(path).extra
(2, {'bits': 1})
>>> write_model(path, serving_model(model, dtype="float16"), {})
>>> bool(read_model(path).learner.predict([[1.0, 0.0]])[0, 0] > 0.5)
True
"""

from forel.store.header import ModelFileError
from forel.store.saving import Content, read_model, write_model
from forel.store.serving import ServingChoice, ServingModel, choose_serving, serving_model

__all__ = [
    "Content", "ModelFileError", "ServingChoice", "ServingModel", "choose_serving", "read_model", "serving_model",
    "write_model",
]  # fmt: skip
