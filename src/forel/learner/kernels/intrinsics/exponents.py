"""Powers of two by the exponent bits of floating-point numbers."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["binade"]


@intrinsic
def binade(typing_context: Any, x: Any) -> Any:
    """Return the power of two at or below |x|; 0 for 0."""
    if not isinstance(x, types.Float):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        width, mask = (32, 0x7F800000) if signature.args[0] == types.float32 else (64, 0x7FF0000000000000)
        bits = builder.bitcast(arguments[0], ir.IntType(width))
        return builder.bitcast(builder.and_(bits, ir.IntType(width)(mask)), arguments[0].type)

    return x(x), codegen
