"""Vectors of a few numbers, in registers: loops over them would be unrolled into scalar code."""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import extending, types

__all__ = ["load_lanes", "store_lanes"]

I32, INDEX = ir.IntType(32), types.uint64
SIZE = 8  # of vectors that hold lanes

intrinsic: Any = extending.intrinsic(prefer_literal=True)


@intrinsic
def load_lanes(typing_context: Any, source: Any, at: Any, target: Any, place: Any, count: Any) -> Any:
    """Copy ``count`` numbers as whole vectors, with zeros after them; see ``plain``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, end = _pointers(context, builder, signature, arguments)
        for first, pieces in _vectors(count.literal_value):
            vector = ir.Constant(ir.VectorType(start.type.pointee, SIZE), None)
            for offset, size in pieces:
                piece = _load(builder, builder.gep(start, [I32(first + offset)]), size)
                # The piece as a vector of SIZE, then the positions from ``offset`` on from it and others as they were.
                wide = _shuffle(builder, piece, piece, [min(k, size) for k in range(SIZE)])
                inside = range(offset, offset + size)
                order = [SIZE + k - offset if k in inside else k for k in range(SIZE)]
                vector = _shuffle(builder, vector, wide, order)
            _store(builder, vector, builder.gep(end, [I32(first)]))
        return context.get_dummy_value()

    return types.void(source, INDEX, target, INDEX, count), codegen


@intrinsic
def store_lanes(typing_context: Any, source: Any, at: Any, target: Any, place: Any, count: Any) -> Any:
    """Copy ``count`` numbers of whole vectors, and write no others; see ``plain``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, end = _pointers(context, builder, signature, arguments)
        for first, pieces in _vectors(count.literal_value):
            vector = _load(builder, builder.gep(start, [I32(first)]), SIZE)
            for offset, size in pieces:
                piece = _shuffle(builder, vector, vector, range(offset, offset + size))
                _store(builder, piece, builder.gep(end, [I32(first + offset)]))
        return context.get_dummy_value()

    return types.void(source, INDEX, target, INDEX, count), codegen


def _vectors(count: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return the first number of every vector of ``count`` numbers, and the offsets and sizes of its pieces.

    Pieces are powers of two. A masked load would read the cache line after a record, too, which is not prefetched.
    """
    vectors = []
    for first in range(0, count, SIZE):
        size = min(SIZE, count - first)
        vectors.append((first, [(size & -2 * piece, piece) for piece in (8, 4, 2, 1) if size & piece]))
    return vectors


def _pointers(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Return pointers to the places of two arrays that are given as array and place."""
    arrays = [context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 2)]
    return [builder.gep(data, [arguments[k]]) for data, k in zip(arrays, (1, 3), strict=True)]


def _shuffle(builder: Any, one: Any, other: Any, order: Sequence[int]) -> Any:
    mask = ir.Constant(ir.VectorType(I32, len(order)), [I32(k) for k in order])
    return builder.shuffle_vector(one, other, mask)


def _load(builder: Any, pointer: Any, size: int) -> Any:
    kind = ir.VectorType(pointer.type.pointee, size)
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=1)


def _store(builder: Any, vector: Any, pointer: Any) -> None:
    builder.store(vector, builder.bitcast(pointer, vector.type.as_pointer()), align=1)
