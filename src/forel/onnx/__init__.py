"""Models as ONNX graphs (extra ``onnx``), for runtimes without Python."""

from forel.onnx.export import to_onnx

__all__ = ["to_onnx"]
