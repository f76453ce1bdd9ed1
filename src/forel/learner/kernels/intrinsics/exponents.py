"""Powers of two by the exponent bits of floating-point numbers.

Scale-free rates keep the records of a coordinate in units of its scale, so that no scale leaves the range of a type.
With s the largest |value| of a coordinate and u the power of two at or below it, values are v/u, weights are wu, and a
record has z/u, n/u² and g_{1:t}/u: all of the size of slopes. A record whose state is the point keeps that as it is.
Multiplying by a power of two is exact, so that results have the same bits as without units.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["binade", "inverse_unit", "unit"]

MANTISSA = {32: 23, 64: 52}


def _bits(kind: Any) -> int:
    return 32 if kind == types.float32 else 64


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
def unit(typing_context: Any, s: Any) -> Any:
    """Return the power of two at or below s, such that both it and 1/u are normal numbers; 1 for s = 0."""
    if not isinstance(s, types.Float):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        width = _bits(signature.args[0])
        whole, shift = ir.IntType(width), MANTISSA[width]
        most = (1 << (width - shift - 1)) - 3  # as biased exponents: 2⁻¹²⁶ is 1 and 2¹²⁶ is 253
        given = builder.bitcast(arguments[0], whole)
        bits = builder.and_(given, whole((most + 2) << shift))
        for limit, comparison in ((1 << shift, "<"), (most << shift, ">")):
            bits = builder.select(builder.icmp_unsigned(comparison, bits, whole(limit)), whole(limit), bits)
        bits = builder.select(builder.icmp_unsigned("==", given, whole(0)), whole((most + 1) // 2 << shift), bits)
        return builder.bitcast(bits, arguments[0].type)

    return s(s), codegen


@intrinsic
def inverse_unit(typing_context: Any, u: Any) -> Any:
    """Return 1/u of such a power of two, exactly."""
    if not isinstance(u, types.Float):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        width = _bits(signature.args[0])
        whole, shift = ir.IntType(width), MANTISSA[width]
        twice = ((1 << (width - shift - 1)) - 2) << shift
        bits = builder.sub(whole(twice), builder.bitcast(arguments[0], whole))
        return builder.bitcast(bits, arguments[0].type)

    return u(u), codegen
