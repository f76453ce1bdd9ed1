"""Models as ONNX graphs (extra ``onnx``), for runtimes without Python."""

from forel.doors.onnx.export import to_onnx

__all__ = ["to_onnx"]
