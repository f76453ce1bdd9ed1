"""Powers of two in which the records of scale-free rates are kept, so that no scale of a feature leaves a type's range.

With s the largest |value| seen of a coordinate and u the power of two at or below it, values are v/u, weights are wu,
and a record has z/u, n/u² and g_{1:t}/u: all of the size of slopes, whatever the feature's unit. A record whose state
is the point itself has that as it is. Multiplying by a power of two is exact, so that results have the same bits as
without units.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["inverse", "unit"]

MANTISSA = {32: 23, 64: 52}


def _bits(kind: Any) -> int:
    return 32 if kind == types.float32 else 64


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
        for limit, how in ((1 << shift, "<"), (most << shift, ">")):
            bits = builder.select(builder.icmp_unsigned(how, bits, whole(limit)), whole(limit), bits)
        bits = builder.select(builder.icmp_unsigned("==", given, whole(0)), whole((most + 1) // 2 << shift), bits)
        return builder.bitcast(bits, arguments[0].type)

    return s(s), codegen


@intrinsic
def inverse(typing_context: Any, u: Any) -> Any:
    """Return 1/u of such a power of two, exactly."""
    if not isinstance(u, types.Float):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        width = _bits(signature.args[0])
        whole, shift = ir.IntType(width), MANTISSA[width]
        twice = ((1 << (width - shift - 1)) - 2) << shift
        return builder.bitcast(
            builder.sub(whole(twice), builder.bitcast(arguments[0], whole)), arguments[0].type
        )  # fmt: skip

    return u(u), codegen
