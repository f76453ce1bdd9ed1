"""Vectors of a few numbers, in registers: loops over them would be unrolled into scalar code.

Records are gathered and scattered eight at a time, transposed in registers: a record is loaded by one instruction and
eight of them are transposed by shuffles, so that scratch has one row per part. Storing numbers one by one and loading
them as a vector would stall: store forwarding needs loads of the same size.
"""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

from forel.learner.layout import record_width

__all__ = ["add_gradients", "gather_records", "load_lanes", "load_values", "scatter_records", "store_lanes"]

BLOCK, HALF, I64, I32 = 8, 4, ir.IntType(64), ir.IntType(32)
INTERLEAVED = ((0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15))  # halves of two vectors of eight
EXPONENTS = {"float": 0x7F800000, "double": 0x7FF0000000000000}
INDEX = types.uint64

intrinsic: Any = extending.intrinsic(prefer_literal=True)


@intrinsic
def gather_records(typing_context: Any, scratch: Any, at: Any, stride: Any, state: Any, parts: Any, indices: Any,
                   j: Any, count: Any, bias: Any) -> Any:  # fmt: skip
    """Gather up to eight records into scratch, one row per part; see ``plain``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scratch, at, _, state, _, indices, j, count, bias = _pointers(context, builder, signature, arguments)
        width = record_width(parts.literal_value)
        coordinates = _coordinates(builder, indices, signature.args[5].dtype, j, count, bias)
        starts = builder.mul(coordinates, _splat(builder, I64(width)))
        records = [builder.gep(state, [builder.extract_element(starts, I32(i))]) for i in range(BLOCK)]
        rows = _rows(builder, [_load(builder, record, width) for record in records])[: parts.literal_value]
        rows[0] = builder.select(_positions(builder, "<=", count), rows[0], ir.Constant(rows[0].type, None))
        for part, row in enumerate(rows):
            _store(builder, row, builder.gep(scratch, [builder.add(at, I64(part * stride.literal_value))]))
        return context.get_dummy_value()

    return types.void(scratch, INDEX, stride, state, parts, indices, INDEX, INDEX, INDEX), codegen


@intrinsic
def scatter_records(typing_context: Any, scratch: Any, at: Any, stride: Any, state: Any, parts: Any, indices: Any,
                    j: Any, count: Any, bias: Any, extra: Any, unused: Any) -> Any:  # fmt: skip
    """Scatter up to eight records of scratch, see ``plain``; padding is written to ``scratch[unused:]``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scratch, at, _, state, _, indices, j, count, bias, extra, unused = _pointers(
            context, builder, signature, arguments
        )
        width, size = record_width(parts.literal_value), context.get_abi_sizeof(state.type.pointee)
        coordinates = _coordinates(builder, indices, signature.args[5].dtype, j, count, bias)
        offsets = builder.mul(coordinates, _splat(builder, I64(width * size)))
        addresses = builder.add(offsets, _splat(builder, builder.ptrtoint(state, I64)))
        discarded = _splat(builder, builder.ptrtoint(builder.gep(scratch, [unused]), I64))
        addresses = builder.select(_positions(builder, "<", builder.add(count, extra)), addresses, discarded)
        rows = [
            _load(builder, builder.gep(scratch, [builder.add(at, I64(part * stride.literal_value))]), BLOCK)
            for part in range(parts.literal_value)
        ]
        rows += [ir.Constant(rows[0].type, None)] * (width - parts.literal_value)
        for i, record in enumerate(_records(builder, rows)):
            _store(builder, record, builder.inttoptr(builder.extract_element(addresses, I32(i)), state.type))
        return context.get_dummy_value()

    numbers = (INDEX,) * 5
    return types.void(scratch, INDEX, stride, state, parts, indices, *numbers), codegen


@intrinsic
def load_values(typing_context: Any, scratch: Any, at: Any, values: Any, j: Any, count: Any, bias_value: Any) -> Any:
    """Copy up to eight values to scratch by a masked load; see ``plain``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scratch, at, values, j, count, bias_value = _pointers(context, builder, signature, arguments)
        loaded = _masked_load(builder, builder.gep(values, [j]), _positions(builder, "<", count))
        chosen = builder.select(_positions(builder, "==", count), _splat(builder, bias_value), loaded)
        _store(builder, chosen, builder.gep(scratch, [at]))
        return context.get_dummy_value()

    return types.void(scratch, INDEX, values, INDEX, INDEX, scratch.dtype), codegen


@intrinsic
def load_lanes(typing_context: Any, source: Any, at: Any, target: Any, place: Any, count: Any) -> Any:
    """Copy ``count`` numbers as whole vectors, with zeros after them; see ``plain``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, end = _starts(context, builder, signature, arguments)
        for first, pieces in _vectors(count.literal_value):
            vector = ir.Constant(ir.VectorType(start.type.pointee, BLOCK), None)
            for offset, size in pieces:
                piece = _load(builder, builder.gep(start, [I32(first + offset)]), size)
                # The piece as a vector of BLOCK, then the positions from ``offset`` on from it and others as they were.
                wide = _shuffle(builder, piece, [min(k, size) for k in range(BLOCK)], piece)
                inside = range(offset, offset + size)
                order = [BLOCK + k - offset if k in inside else k for k in range(BLOCK)]
                vector = _shuffle(builder, vector, order, wide)
            _store(builder, vector, builder.gep(end, [I32(first)]))
        return context.get_dummy_value()

    return types.void(source, INDEX, target, INDEX, count), codegen


@intrinsic
def store_lanes(typing_context: Any, source: Any, at: Any, target: Any, place: Any, count: Any) -> Any:
    """Copy ``count`` numbers of whole vectors, and write no others; see ``plain``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, end = _starts(context, builder, signature, arguments)
        for first, pieces in _vectors(count.literal_value):
            vector = _load(builder, builder.gep(start, [I32(first)]), BLOCK)
            for offset, size in pieces:
                piece = _shuffle(builder, vector, range(offset, offset + size))
                _store(builder, piece, builder.gep(end, [I32(first + offset)]))
        return context.get_dummy_value()

    return types.void(source, INDEX, target, INDEX, count), codegen


def _vectors(count: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return the first number of every vector of ``count`` numbers, and the offsets and sizes of its pieces.

    Pieces are powers of two. A masked load would read the cache line after a record, too, which is not prefetched.
    """
    vectors = []
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        vectors.append((first, [(size & -2 * piece, piece) for piece in (8, 4, 2, 1) if size & piece]))
    return vectors


@intrinsic
def add_gradients(typing_context: Any, scales: Any, at: Any, scale: Any, change: Any, row: Any, slopes: Any, noise: Any,
                  v: Any) -> Any:  # fmt: skip
    """Set a scale, and add slopes times v to the three numbers after it, as one vector of four; see ``plain``."""
    real, fused = scales.dtype, ["contract"]

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scales, at, scale, change, row, slopes, noise, v = _pointers(context, builder, signature, arguments)
        target, vector = builder.gep(scales, [at]), ir.VectorType(v.type, HALF)
        integer = ir.VectorType(ir.IntType(32 if isinstance(v.type, ir.FloatType) else 64), HALF)
        before = builder.fmul(_load(builder, target, HALF), _splat(builder, change, HALF))
        g = builder.fmul(_load(builder, builder.gep(row, [slopes]), HALF), _splat(builder, v, HALF))
        mask = ir.Constant(integer, [ir.Constant(integer.element, EXPONENTS[str(v.type)])] * HALF)
        binade = builder.bitcast(builder.and_(builder.bitcast(before, integer), mask), vector)
        noises = _load(builder, builder.gep(row, [noise]), HALF)
        added = builder.fadd(g, builder.fmul(binade, noises, flags=fused), flags=fused)
        _store(builder, builder.insert_element(builder.fadd(before, added), scale, I32(0)), target)
        return context.get_dummy_value()

    return types.void(scales, INDEX, real, real, row, INDEX, INDEX, real), codegen


def _starts(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Return pointers to the places of two arrays that are given as array and place."""
    source, at, target, place, _ = _pointers(context, builder, signature, arguments)
    return [builder.gep(source, [at]), builder.gep(target, [place])]


def _rows(builder: Any, records: list[Any]) -> list[Any]:
    """Return eight records as one row per part."""
    width = records[0].type.count
    if width == HALF:
        pairs = zip(records[:HALF], records[HALF:], strict=True)
        return _transposed(builder, [_concatenated(builder, list(pair)) for pair in pairs])
    joined = _concatenated(builder, records)
    return [_shuffle(builder, joined, range(part, BLOCK * width, width)) for part in range(width)]


def _records(builder: Any, rows: list[Any]) -> list[Any]:
    """Return eight records from one row per part: the inverse of ``_rows``."""
    width = len(rows)
    if width == HALF:
        pairs = _transposed(builder, rows)
        return [_shuffle(builder, pair, range(start, start + HALF)) for start in (0, HALF) for pair in pairs]
    joined = _concatenated(builder, rows)
    return [_shuffle(builder, joined, range(i, BLOCK * width, BLOCK)) for i in range(BLOCK)]


def _transposed(builder: Any, vectors: list[Any]) -> list[Any]:
    """Return four vectors of eight with their left and right halves transposed, four by four, in two rounds.

    Shuffles of two vectors that stay within halves are single instructions; those of all 32 numbers are not.
    """
    for _ in range(2):
        pairs = zip(vectors[:2], vectors[2:], strict=True)
        vectors = [_shuffle(builder, one, order, other) for one, other in pairs for order in INTERLEAVED]
    return vectors


def _pointers(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Return the arguments, with arrays as pointers to their data."""
    pairs = zip(signature.args, arguments, strict=True)
    return [
        context.make_array(kind)(context, builder, a).data if isinstance(kind, types.Array) else a for kind, a in pairs
    ]


def _coordinates(builder: Any, indices: Any, kind: Any, j: Any, count: Any, bias: Any) -> Any:
    """Return ``count`` indices from the j-th on, then the bias, then zeros, as a vector of 64-bit integers."""
    loaded = _masked_load(builder, builder.gep(indices, [j]), _positions(builder, "<", count))
    wide = ir.VectorType(I64, BLOCK)
    if loaded.type != wide:
        loaded = (builder.sext if kind.signed else builder.zext)(loaded, wide)
    return builder.select(_positions(builder, "==", count), _splat(builder, bias), loaded)


def _positions(builder: Any, comparison: str, count: Any) -> Any:
    """Return the mask of positions 0 to 7 for which the comparison with ``count`` holds."""
    positions = ir.Constant(ir.VectorType(I32, BLOCK), [ir.Constant(I32, i) for i in range(BLOCK)])
    return builder.icmp_unsigned(comparison, positions, _splat(builder, builder.trunc(count, I32)))


def _masked_load(builder: Any, pointer: Any, mask: Any) -> Any:
    """Load a vector, with zeros where the mask is false; nothing is read there."""
    kind = ir.VectorType(pointer.type.pointee, BLOCK)
    place = builder.bitcast(pointer, kind.as_pointer())
    letter = "i" if isinstance(kind.element, ir.IntType) else "f"
    bits = kind.element.width if letter == "i" else 64 if isinstance(kind.element, ir.DoubleType) else 32
    function_type = ir.FunctionType(kind, [place.type, I32, mask.type, kind])
    name = f"llvm.masked.load.v{BLOCK}{letter}{bits}.p0"
    function = cgutils.get_or_insert_function(builder.module, function_type, name)
    return builder.call(function, [place, I32(1), mask, ir.Constant(kind, None)])


def _load(builder: Any, pointer: Any, size: int) -> Any:
    vector = ir.VectorType(pointer.type.pointee, size)
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=1)


def _store(builder: Any, vector: Any, pointer: Any) -> None:
    builder.store(vector, builder.bitcast(pointer, vector.type.as_pointer()), align=1)


def _splat(builder: Any, number: Any, size: int = BLOCK) -> Any:
    """Return a vector with the same number at every position."""
    vector = ir.Constant(ir.VectorType(number.type, size), ir.Undefined)
    for i in range(size):
        vector = builder.insert_element(vector, number, I32(i))
    return vector


def _shuffle(builder: Any, vector: Any, positions: Sequence[int], other: Any = None) -> Any:
    """Return the elements at some positions of a vector, or of the concatenation of two."""
    mask = ir.Constant(ir.VectorType(I32, len(positions)), [ir.Constant(I32, k) for k in positions])
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined) if other is None else other, mask)


def _concatenated(builder: Any, vectors: list[Any]) -> Any:
    """Return the concatenation of vectors of equal size, whose number is a power of two."""
    while len(vectors) > 1:
        both = range(2 * vectors[0].type.count)
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [_shuffle(builder, one, both, other) for one, other in pairs]
    return vectors[0]
