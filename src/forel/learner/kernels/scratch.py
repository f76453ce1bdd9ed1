"""Memory of a kernel's own, of which the compiler knows that nothing else lies in it.

Of numba's arrays it does not: their memory is found by way of a record, and might be anybody's. Loops that read one
array and write another are then compiled twice, and ask each time which of both may run.
"""

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

__all__ = ["owned", "release"]

LINE = 64  # bytes of a cache line


@intrinsic
def owned(typing_context: Any, like: Any, count: Any) -> Any:
    """Return ``count`` zeros of the type of an array, which have to be released."""
    if not isinstance(like, types.Array) or not isinstance(count, types.Integer):
        return None
    kind = types.Array(like.dtype, 1, "C")

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = cgutils.intp_t
        element = context.get_data_type(kind.dtype)
        each = whole(context.get_abi_sizeof(element))
        size = builder.mul(arguments[1], each)
        raw = context.nrt.allocate(builder, builder.add(size, whole(LINE)))
        # The next line begins at least so far on as an address is long, which is kept before it.
        beyond = builder.and_(builder.ptrtoint(raw, whole), whole(LINE - 1))
        place = builder.gep(raw, [builder.sub(whole(LINE), beyond)])
        builder.store(raw, _before(builder, place))
        cgutils.memset(builder, place, size, 0)
        made = make_array(kind)(context, builder)
        data = builder.bitcast(place, element.as_pointer())
        populate_array(made, data=data, shape=[arguments[1]], strides=[each], itemsize=each, meminfo=None)
        return made._getvalue()

    return kind(like, count), codegen


@intrinsic
def release(typing_context: Any, array: Any) -> Any:
    """Give such memory back."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        struct = make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(struct.data, cgutils.voidptr_t)
        context.nrt.free(builder, builder.load(_before(builder, place)))
        return context.get_dummy_value()

    return types.void(array), codegen


def _before(builder: Any, place: Any) -> Any:
    """Return where the address of all the memory is kept."""
    slot = builder.gep(place, [cgutils.intp_t(-8)])
    return builder.bitcast(slot, cgutils.voidptr_t.as_pointer())
