"""Models in MLflow (extra ``mlflow``): folders that ``mlflow.pyfunc.load_model`` reads, and that predict frames."""

from forel.mlflow.models import load_model, log_model, save_model
from forel.mlflow.pyfunc import _load_pyfunc as _load_pyfunc

__all__ = ["load_model", "log_model", "save_model"]
