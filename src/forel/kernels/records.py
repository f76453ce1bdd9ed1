"""Eight records at a time from the state to a desk, and back, by way of registers.

A processor hands on what was stored to a load of the same bytes at once. A load of eight numbers that were stored one
by one waits until all of them have arrived in the cache, and those of a desk would be such.
"""

from collections.abc import Iterable
from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils
from numba.np.arrayobj import make_array

__all__ = ["fetch", "give", "spread"]

SIDE, WHOLE, PLACE = 8, ir.IntType(64), ir.IntType(32)
# Which records share a register, such that one more step has their numbers in order; and that step, and its inverse.
LOW, HIGH = (0, 1, 4, 5), (2, 3, 6, 7)
SORTED = [(k, 2 + k, 8 + k, 10 + k, 4 + k, 6 + k, 12 + k, 14 + k) for k in (0, 1)]
PAIRED = [(k, 8 + k, 1 + k, 9 + k, 4 + k, 12 + k, 5 + k, 13 + k) for k in (0, 2)]

intrinsic: Any = extending.intrinsic(prefer_literal=True)
UNSIGNED = types.uint64


@intrinsic
def fetch(typing_context: Any, desk: Any, c: Any, apart: Any, zn: Any, parts: Any, indices: Any, j: Any, count: Any,
          bias: Any) -> Any:  # fmt: skip
    """Put eight records on the desk from place c on, with their parts so far apart: those of indices from the j-th on.

    So many indices are looked at, at least one. The record after them is the bias's, and z is 0 in those after it.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        desk, c, _, zn, _, indices, j, count, bias = _opened(context, builder, signature, arguments)
        records = []
        for i, q in enumerate(_numbers(builder, indices, j, count)):
            known = context.cast(builder, q, signature.args[5].dtype, UNSIGNED)
            chosen = builder.select(_compared(builder, i, "==", count), bias, known)
            records.append(builder.gep(zn, [builder.mul(chosen, WHOLE(parts.literal_value))]))
        kinds = _kinds(builder, records, parts.literal_value)
        there = _vector(builder, [_compared(builder, i, "<=", count) for i in range(SIDE)])
        kinds[0] = builder.select(there, kinds[0], ir.Constant(kinds[0].type, None))
        for part, kind in enumerate(kinds):
            place = builder.gep(desk, [builder.add(c, WHOLE(part * apart.literal_value))])
            builder.store(kind, _vector_at(builder, place, SIDE), align=1)
        return context.get_dummy_value()

    return types.void(desk, UNSIGNED, apart, zn, parts, indices, UNSIGNED, UNSIGNED, UNSIGNED), codegen


@intrinsic
def spread(typing_context: Any, desk: Any, c: Any, values: Any, j: Any, count: Any, unit: Any) -> Any:
    """Put eight values on the desk from place c on: so many from the j-th on, at least one, the unit, and zeros."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        desk, c, values, j, count, unit = _opened(context, builder, signature, arguments)
        chosen = []
        for i, v in enumerate(_numbers(builder, values, j, count)):
            rest = builder.select(_compared(builder, i, "==", count), unit, v.type(0.0))
            chosen.append(builder.select(_compared(builder, i, "<", count), v, rest))
        builder.store(_vector(builder, chosen), _vector_at(builder, builder.gep(desk, [c]), SIDE), align=1)
        return context.get_dummy_value()

    return types.void(desk, UNSIGNED, values, UNSIGNED, UNSIGNED, desk.dtype), codegen


@intrinsic
def give(typing_context: Any, desk: Any, c: Any, apart: Any, zn: Any, parts: Any, indices: Any, j: Any) -> Any:
    """Put eight records of the desk back to the indices from the j-th on."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        desk, c, _, zn, _, indices, j = _opened(context, builder, signature, arguments)
        starts = [builder.add(c, WHOLE(part * apart.literal_value)) for part in range(parts.literal_value)]
        places = [builder.gep(desk, [start]) for start in starts]
        z, n = (builder.load(_vector_at(builder, place, SIDE), align=1) for place in places[:2])
        both = [_mixed(builder, z, n, order) for order in PAIRED]
        for i, q in enumerate(_numbers(builder, indices, j, WHOLE(SIDE))):
            known = context.cast(builder, q, signature.args[5].dtype, UNSIGNED)
            record = builder.gep(zn, [builder.mul(known, WHOLE(parts.literal_value))])
            register, first = both[i in HIGH], 2 * (LOW if i in LOW else HIGH).index(i)
            pair = _mixed(builder, register, register, (first, first + 1))
            builder.store(pair, _vector_at(builder, record, 2), align=1)
            for part, place in enumerate(places[2:], start=2):
                builder.store(builder.load(builder.gep(place, [WHOLE(i)])), builder.gep(record, [WHOLE(part)]))
        return context.get_dummy_value()

    return types.void(desk, UNSIGNED, apart, zn, parts, indices, UNSIGNED), codegen


def _opened(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Return the arguments with arrays as pointers to their numbers."""
    kinds = zip(signature.args, arguments, strict=True)
    return [make_array(k)(context, builder, a).data if isinstance(k, types.Array) else a for k, a in kinds]


def _compared(builder: Any, i: int, how: str, count: Any) -> Any:
    return builder.icmp_unsigned(how, WHOLE(i), count)


def _numbers(builder: Any, array: Any, j: Any, count: Any) -> list[Any]:
    """Return eight numbers of an array from the j-th on, and that one instead of those from ``count`` on."""
    steps = [builder.select(_compared(builder, i, "<", count), WHOLE(i), WHOLE(0)) for i in range(SIDE)]
    return [builder.load(builder.gep(array, [builder.add(j, step)])) for step in steps]


def _kinds(builder: Any, records: list[Any], parts: int) -> list[Any]:
    """Return the first parts of all records, the second ones, and so on."""
    if parts == 1:
        return [_vector(builder, [builder.load(record) for record in records])]
    return _pairs(builder, records) if parts == 2 else _quads(builder, records, parts)


def _pairs(builder: Any, records: list[Any]) -> list[Any]:
    """Return the first parts of records of two, and the second."""
    loaded = [builder.load(_vector_at(builder, record, 2), align=1) for record in records]
    low, high = (_joined(builder, [loaded[i] for i in group]) for group in (LOW, HIGH))
    return [_mixed(builder, low, high, order) for order in SORTED]


def _quads(builder: Any, records: list[Any], parts: int) -> list[Any]:
    """Return the parts of records of three or four, one after the other."""
    loaded = [_part_of_four(builder, record, parts) for record in records]
    sides = [_joined(builder, [loaded[i], loaded[i + 4]]) for i in range(4)]
    found = []
    for order in PAIRED:
        low, high = (_mixed(builder, sides[k], sides[k + 1], order) for k in (0, 2))
        found += [_mixed(builder, low, high, (k, k + 1, 8 + k, 9 + k, 4 + k, 5 + k, 12 + k, 13 + k)) for k in (0, 2)]
    return found[:parts]


def _part_of_four(builder: Any, record: Any, parts: int) -> Any:
    """Return the first numbers of a record as four, without a look at those after them."""
    real = record.type.pointee
    kind, flag = ir.VectorType(real, 4), ir.VectorType(ir.IntType(1), 4)
    pointer = _vector_at(builder, record, 4)
    name = f"llvm.masked.load.v4f{64 if isinstance(real, ir.DoubleType) else 32}.p0"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [pointer.type, PLACE, flag, kind]), name
    )
    mask = ir.Constant(flag, [ir.Constant(ir.IntType(1), i < parts) for i in range(4)])
    return builder.call(function, [pointer, PLACE(1), mask, ir.Constant(kind, None)])


def _vector_at(builder: Any, pointer: Any, size: int) -> Any:
    return builder.bitcast(pointer, ir.VectorType(pointer.type.pointee, size).as_pointer())


def _vector(builder: Any, numbers: list[Any]) -> Any:
    """Return numbers as a vector."""
    vector = ir.Constant(ir.VectorType(numbers[0].type, len(numbers)), ir.Undefined)
    for i, number in enumerate(numbers):
        vector = builder.insert_element(vector, number, PLACE(i))
    return vector


def _mixed(builder: Any, one: Any, other: Any, order: Iterable[int]) -> Any:
    """Return some numbers of two vectors, counted through both."""
    places = [ir.Constant(PLACE, k) for k in order]
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(PLACE, len(places)), places))


def _joined(builder: Any, vectors: list[Any]) -> Any:
    """Return vectors of equal size, a power of two of them, one after the other."""
    while len(vectors) > 1:
        order, halves = range(2 * vectors[0].type.count), zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [_mixed(builder, one, other, order) for one, other in halves]
    return vectors[0]
