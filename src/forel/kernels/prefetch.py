"""A hint to the processor to fetch a cache line that will be needed soon."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["prefetch"]


@intrinsic
def prefetch(typing_context: Any, array: Any, row: Any) -> Any:
    """Ask for the cache line that holds ``array[row, 0, ...]``, to be written; it is never an error."""
    signature = types.void(array, types.intp)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        struct = context.make_array(kind)(context, builder, arguments[0])
        zeros = [ir.Constant(ir.IntType(64), 0)] * (kind.ndim - 1)
        pointer = cgutils.get_item_pointer2(
            context,
            builder,
            struct.data,
            cgutils.unpack_tuple(builder, struct.shape),
            cgutils.unpack_tuple(builder, struct.strides),
            kind.layout,
            [arguments[1], *zeros],
        )
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
        builder.call(function, [builder.bitcast(pointer, byte), word(1), word(3), word(1)])
        return context.get_dummy_value()

    return signature, codegen
