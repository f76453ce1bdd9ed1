"""Scratch memory that the compiler can assume not to alias other memory, and a prefetch instruction.

It cannot assume the former of numba's arrays: loops that read one array and write another would be compiled in two
versions, with an alias check at run time.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from forel.jit.private import private

__all__ = ["allocate", "prefetch", "release"]

NRTContext, populate_array = private("memory"), private("populate_array")

LINE = 64  # bytes of a cache line


@intrinsic
def allocate(typing_context: Any, like: Any, count: Any) -> Any:
    """Return ``count`` zeros of the type of an array, aligned to a cache line; ``release`` frees them."""
    if not isinstance(like, types.Array) or not isinstance(count, types.Integer):
        return None
    kind = types.Array(like.dtype, 1, "C")

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = cgutils.intp_t
        element = context.get_data_type(kind.dtype)
        itemsize = word(context.get_abi_sizeof(element))
        size = builder.mul(arguments[1], itemsize)
        raw = NRTContext(context, True).allocate(builder, builder.add(size, word(LINE)))
        # Allocations are aligned to 16 bytes, so that the original address fits before the next line.
        offset = builder.and_(builder.ptrtoint(raw, word), word(LINE - 1))
        aligned = builder.gep(raw, [builder.sub(word(LINE), offset)])
        builder.store(raw, _address_slot(builder, aligned))
        cgutils.memset(builder, aligned, size, 0)
        array = context.make_array(kind)(context, builder)
        data = builder.bitcast(aligned, element.as_pointer())
        populate_array(array, data=data, shape=[arguments[1]], strides=[itemsize], itemsize=itemsize, meminfo=None)
        return array._getvalue()

    return kind(like, count), codegen


@intrinsic
def release(typing_context: Any, array: Any) -> Any:
    """Free memory from ``allocate``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        aligned = builder.bitcast(struct.data, cgutils.voidptr_t)
        NRTContext(context, True).free(builder, builder.load(_address_slot(builder, aligned)))
        return context.get_dummy_value()

    return types.void(array), codegen


def _address_slot(builder: Any, aligned: Any) -> Any:
    """Return the location of the original address of an allocation."""
    slot = builder.gep(aligned, [cgutils.intp_t(-8)])
    return builder.bitcast(slot, cgutils.voidptr_t.as_pointer())


@intrinsic
def prefetch(typing_context: Any, array: Any, place: Any) -> Any:
    """Prefetch the cache line of ``array[place]`` for writing; addresses out of bounds are allowed."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(function, [address, word(1), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.uintp), codegen
