"""Model files: one file with everything that learning needs to go on, or a small one for predicting only.

=====================  ===========================================================================================
``save(path, model)``  the whole state; loading it and going on gives the same bits as never having stopped
``serving(model)``     the weights that are not zero, as float32 or float16, to ``save`` or to predict with at once
``load(path)``         either of them, with what was kept beside it: ``extra``, and ``names`` of slots
=====================  ===========================================================================================

Files are safetensors: numbers and text, nothing that runs. They are written beside the old one, synced and renamed, so
that there is always a whole one.

>>> import pathlib, tempfile
>>> from forel.learner.linear import Linear, Settings
>>> path = pathlib.Path(tempfile.mkdtemp()) / "model.forel"
>>> model = Linear(2, Settings(alpha=1.0))
>>> _ = model.learn([[1.0, 0.0], [0.0, 1.0]], [1, 0])
>>> save(path, model, extra={"bits": 1})
>>> stored = load(path)
>>> stored.model.rounds, stored.extra
(2, {'bits': 1})
>>> save(path, serving(model, dtype="float16"))
>>> bool(load(path).model.predict([[1.0, 0.0]])[0, 0] > 0.5)
True
"""

from forel.store.files import Unreadable
from forel.store.predicting import Serving, serving
from forel.store.saving import Stored, load, save

__all__ = ["Serving", "Stored", "Unreadable", "load", "save", "serving"]
