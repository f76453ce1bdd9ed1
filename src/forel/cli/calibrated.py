"""The sentence about calibration in the summary of training."""

from typing import Any

from forel.cli.json_values import jsonable
from forel.training.calibrating import Calibrated

__all__ = ["calibrated_json", "calibration_sentence"]


def calibrated_json(calibrated: Calibrated) -> dict[str, Any]:
    """Return the calibration and its metrics as JSON values."""
    known = calibrated.calibration
    measured = {"report": jsonable(calibrated.report), "holdout": jsonable(calibrated.holdout)}
    slices = {"slices": [table.to_json() for table in calibrated.slices]} if calibrated.slices else {}
    numbers = {} if known is None else {"slope": known.slope, "offset": known.offset}
    return {"calibrated": {**numbers, **measured, **slices}}


def calibration_sentence(calibrated: Calibrated, mixed: bool, certified: bool) -> str:
    """Return what predictions are, and which statements are about predictions before calibration."""
    statements = (("the mixture's guarantee", mixed), ("the certificate", certified))
    others = [name for name, there in statements if there]
    sentence = f"predictions of the model are the probabilities of {calibrated.calibration}"
    if calibrated.calibration is None:
        return "predictions of each model are calibrated by its own rows; losses and floors of keys are those before"
    if not others:
        return sentence
    verb = "are" if len(others) > 1 else "is"
    return f"{sentence}; {' and '.join(others)} above {verb} about predictions before calibration"
