"""Addition of the gradients of a row to those that are kept after a scale, as one vector of four numbers.

A loop over four numbers would be unrolled into scalar code.
"""

from typing import Any

from llvmlite import ir
from numba import extending, types

__all__ = ["add_gradients"]

SIZE, I32, FUSED = 4, ir.IntType(32), ["contract"]
EXPONENTS = {"float": 0x7F800000, "double": 0x7FF0000000000000}
INDEX = types.uint64


@extending.intrinsic
def add_gradients(typing_context: Any, scales: Any, at: Any, scale: Any, change: Any, row: Any, slopes: Any, noise: Any,
                  v: Any) -> Any:  # fmt: skip
    """Set a scale, and add slopes times v to the three numbers after it; see ``plain``."""
    real = scales.dtype

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pairs = zip(signature.args, arguments, strict=True)
        scales, at, scale, change, row, slopes, noise, v = (
            context.make_array(kind)(context, builder, a).data if isinstance(kind, types.Array) else a
            for kind, a in pairs
        )
        vector = ir.VectorType(v.type, SIZE)
        integer = ir.VectorType(ir.IntType(32 if isinstance(v.type, ir.FloatType) else 64), SIZE)
        target = builder.bitcast(builder.gep(scales, [at]), vector.as_pointer())

        def load(place: Any) -> Any:
            return builder.load(builder.bitcast(builder.gep(row, [place]), vector.as_pointer()), align=1)

        def splat(number: Any) -> Any:
            first = builder.insert_element(ir.Constant(vector, ir.Undefined), number, I32(0))
            return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(I32, SIZE), [I32(0)] * SIZE))

        before = builder.fmul(builder.load(target, align=1), splat(change))
        g = builder.fmul(load(slopes), splat(v))
        mask = ir.Constant(integer, [ir.Constant(integer.element, EXPONENTS[str(v.type)])] * SIZE)
        binade = builder.bitcast(builder.and_(builder.bitcast(before, integer), mask), vector)
        added = builder.fadd(g, builder.fmul(binade, load(noise), flags=FUSED), flags=FUSED)
        total = builder.insert_element(builder.fadd(before, added), scale, I32(0))
        builder.store(total, target, align=1)
        return context.get_dummy_value()

    return types.void(scales, INDEX, real, real, row, INDEX, INDEX, real), codegen
