"""Scalars by their bits: powers of two by the exponents of floating-point numbers, arrays from addresses."""

from typing import Any

from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["binade", "carray", "inverse_power", "pointer"]


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


@intrinsic
def inverse_power(typing_context: Any, x: Any) -> Any:
    """Return 1/x for a power of two whose inverse is a normal number, exactly and without a division."""
    if not isinstance(x, types.Float):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        width, one = (32, 0x3F800000) if signature.args[0] == types.float32 else (64, 0x3FF0000000000000)
        bits = builder.bitcast(arguments[0], ir.IntType(width))
        return builder.bitcast(builder.sub(ir.IntType(width)(2 * one), bits), arguments[0].type)

    return x(x), codegen


@intrinsic
def pointer(typing_context: Any, address: Any) -> Any:
    """Convert an integer to a pointer."""
    if not isinstance(address, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), codegen
