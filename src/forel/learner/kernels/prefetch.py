"""A hint to the processor to fetch a cache line that will be needed soon."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["prefetch"]


@intrinsic
def prefetch(typing_context: Any, array: Any, place: Any) -> Any:
    """Ask for the cache line that holds ``array[place]``, to be written; it is never an error."""
    signature = types.void(array, types.uintp)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        struct = context.make_array(kind)(context, builder, arguments[0])
        shape, strides = (cgutils.unpack_tuple(builder, part) for part in (struct.shape, struct.strides))
        pointer = cgutils.get_item_pointer2(
            context, builder, struct.data, shape, strides, kind.layout, [arguments[1]]
        )  # fmt: skip
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(function, [builder.bitcast(pointer, byte), word(1), word(3), word(1)])
        return context.get_dummy_value()

    return signature, codegen
