"""Vectors of a few numbers, in registers: loops over them would be unrolled into scalar code."""

from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.np.arrayobj import make_array

__all__ = ["add_product", "exchange_halves"]

I32, INDEX, FUSED = ir.IntType(32), types.uint64, ["contract"]

intrinsic: Any = extending.intrinsic(prefer_literal=True)


@intrinsic
def add_product(typing_context: Any, array: Any, at: Any, source: Any, factor: Any, size: Any) -> Any:
    """Add ``factor`` times the vector at ``source`` to the vector at ``at``; see ``plain``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (target, vector), (_, added) = (
            _vector(context, builder, signature, arguments, 0, place, size) for place in (1, 2)
        )
        first = builder.insert_element(ir.Constant(vector.type, ir.Undefined), arguments[3], I32(0))
        factors = builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(I32, size.literal_value), None))
        product = builder.fmul(added, factors, flags=FUSED)
        builder.store(builder.fadd(vector, product, flags=FUSED), target, align=1)
        return context.get_dummy_value()

    return types.void(array, INDEX, INDEX, array.dtype, size), codegen


@intrinsic
def exchange_halves(typing_context: Any, source: Any, first: Any, second: Any, target: Any, third: Any, fourth: Any,
                    size: Any) -> Any:  # fmt: skip
    """Write the first halves of two vectors to one place, the second halves to another; see ``plain``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        count, half = size.literal_value, size.literal_value // 2
        vectors = [_vector(context, builder, signature, arguments, 0, place, size)[1] for place in (1, 2)]
        for place, start in ((4, 0), (5, half)):
            order = [*range(start, start + half), *range(count + start, count + start + half)]
            mask = ir.Constant(ir.VectorType(I32, count), [I32(k) for k in order])
            pointer, _ = _vector(context, builder, signature, arguments, 3, place, size)
            builder.store(builder.shuffle_vector(*vectors, mask), pointer, align=1)
        return context.get_dummy_value()

    return types.void(source, INDEX, INDEX, target, INDEX, INDEX, size), codegen


def _vector(context: Any, builder: Any, signature: Any, arguments: Any, array: int, place: int, size: Any) -> Any:
    """Return a pointer to a vector and the vector, for the numbers of the arguments that are its array and place."""
    data = make_array(signature.args[array])(context, builder, arguments[array]).data
    kind = ir.VectorType(data.type.pointee, size.literal_value)
    pointer = builder.bitcast(builder.gep(data, [arguments[place]]), kind.as_pointer())
    return pointer, builder.load(pointer, align=1)
