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

from forel.learner.kernels.recipe import room

__all__ = ["exempt", "fetch", "fetch_rest", "give", "give_rest", "spread", "spread_rest"]

SIDE, WHOLE, PLACE = 8, ir.IntType(64), ir.IntType(32)
# Which records share a register, such that one more step has their numbers in order; and that step, and its inverse.
LOW, HIGH = (0, 1, 4, 5), (2, 3, 6, 7)
SORTED = [(k, 2 + k, 8 + k, 10 + k, 4 + k, 6 + k, 12 + k, 14 + k) for k in (0, 1)]
PAIRED = [(k, 8 + k, 1 + k, 9 + k, 4 + k, 12 + k, 5 + k, 13 + k) for k in (0, 2)]
QUARTERS = [(k, k + 1, 8 + k, 9 + k, 4 + k, 5 + k, 12 + k, 13 + k) for k in (0, 2)]  # the same with pairs as numbers

intrinsic: Any = extending.intrinsic(prefer_literal=True)
UNSIGNED = types.uint64


@intrinsic
def fetch(typing_context: Any, desk: Any, c: Any, apart: Any, zn: Any, parts: Any, indices: Any, j: Any) -> Any:
    """Put the records of eight indices from the j-th on on the desk, from place c on, with their parts so far apart."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        desk, c, _, zn, _, indices, j = _opened(context, builder, signature, arguments)
        known = [_unsigned(builder, q, signature.args[5].dtype) for q in _eight(builder, indices, j)]
        records = [builder.gep(zn, [builder.mul(q, WHOLE(room(parts.literal_value)))]) for q in known]
        _lay(builder, _kinds(builder, records, parts.literal_value), desk, c, apart.literal_value)
        return context.get_dummy_value()

    return types.void(desk, UNSIGNED, apart, zn, parts, indices, UNSIGNED), codegen


@intrinsic
def fetch_rest(typing_context: Any, desk: Any, c: Any, apart: Any, zn: Any, parts: Any, indices: Any, j: Any,
               count: Any, bias: Any) -> Any:  # fmt: skip
    """Put fewer than eight records on the desk, the bias's after them, and z = 0 at the places after it.

    Nothing of the indices after them is looked at. There is no branch in this, which would be guessed wrong.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        desk, c, _, zn, _, indices, j, count, bias = _opened(context, builder, signature, arguments)
        chosen = _rest(builder, indices, signature.args[5].dtype, j, count, bias)
        starts = builder.mul(chosen, _same(builder, WHOLE(room(parts.literal_value))))
        records = [builder.gep(zn, [builder.extract_element(starts, PLACE(i))]) for i in range(SIDE)]
        kinds = _kinds(builder, records, parts.literal_value)
        kinds[0] = builder.select(_places(builder, "<=", count), kinds[0], ir.Constant(kinds[0].type, None))
        _lay(builder, kinds, desk, c, apart.literal_value)
        return context.get_dummy_value()

    return types.void(desk, UNSIGNED, apart, zn, parts, indices, UNSIGNED, UNSIGNED, UNSIGNED), codegen


@intrinsic
def spread(typing_context: Any, desk: Any, c: Any, values: Any, j: Any) -> Any:
    """Put eight values on the desk from place c on, those from the j-th on."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        desk, c, values, j = _opened(context, builder, signature, arguments)
        _lay(builder, [_loaded(builder, builder.gep(values, [j]), SIDE)], desk, c, 0)
        return context.get_dummy_value()

    return types.void(desk, UNSIGNED, values, UNSIGNED), codegen


@intrinsic
def spread_rest(typing_context: Any, desk: Any, c: Any, values: Any, j: Any, count: Any, unit: Any) -> Any:
    """Put fewer than eight values on the desk, the unit after them, and zeros."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        desk, c, values, j, count, unit = _opened(context, builder, signature, arguments)
        known = _masked(builder, builder.gep(values, [j]), _places(builder, "<", count))
        chosen = builder.select(_places(builder, "==", count), _same(builder, unit), known)
        _lay(builder, [chosen], desk, c, 0)
        return context.get_dummy_value()

    return types.void(desk, UNSIGNED, values, UNSIGNED, UNSIGNED, desk.dtype), codegen


@intrinsic
def exempt(typing_context: Any, desk: Any, c: Any, count: Any, unit: Any) -> Any:
    """Put eight ones on the desk from place c on, less a unit at the place after so many."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        desk, c, count, unit = _opened(context, builder, signature, arguments)
        one = ir.Constant(unit.type, 1.0)
        less = _same(builder, builder.fsub(one, unit))
        _lay(builder, [builder.select(_places(builder, "==", count), less, _same(builder, one))], desk, c, 0)
        return context.get_dummy_value()

    return types.void(desk, UNSIGNED, UNSIGNED, desk.dtype), codegen


@intrinsic
def give(typing_context: Any, desk: Any, c: Any, apart: Any, zn: Any, parts: Any, indices: Any, j: Any) -> Any:
    """Put eight records of the desk back to the indices from the j-th on."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        desk, c, _, zn, _, indices, j = _opened(context, builder, signature, arguments)
        known = [_unsigned(builder, q, signature.args[5].dtype) for q in _eight(builder, indices, j)]
        records = [builder.gep(zn, [builder.mul(q, WHOLE(room(parts.literal_value)))]) for q in known]
        _put(builder, desk, c, apart.literal_value, parts.literal_value, records)
        return context.get_dummy_value()

    return types.void(desk, UNSIGNED, apart, zn, parts, indices, UNSIGNED), codegen


@intrinsic
def give_rest(typing_context: Any, desk: Any, c: Any, apart: Any, zn: Any, parts: Any, indices: Any, j: Any,
              count: Any, bias: Any, extra: Any, spare: Any) -> Any:  # fmt: skip
    """Put fewer than eight records of the desk back, the bias's after them if one is extra, and the others aside."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        desk, c, _, zn, _, indices, j, count, bias, extra, spare = _opened(context, builder, signature, arguments)
        chosen = _rest(builder, indices, signature.args[5].dtype, j, count, bias)
        size = WHOLE(room(parts.literal_value) * context.get_abi_sizeof(zn.type.pointee))
        starts = builder.add(builder.mul(chosen, _same(builder, size)), _same(builder, builder.ptrtoint(zn, WHOLE)))
        nowhere = _same(builder, builder.ptrtoint(builder.gep(desk, [spare]), WHOLE))
        wanted = builder.select(_places(builder, "<", builder.add(count, extra)), starts, nowhere)
        records = [builder.inttoptr(builder.extract_element(wanted, PLACE(i)), zn.type) for i in range(SIDE)]
        _put(builder, desk, c, apart.literal_value, parts.literal_value, records)
        return context.get_dummy_value()

    numbers = UNSIGNED, UNSIGNED, UNSIGNED, UNSIGNED, UNSIGNED
    return types.void(desk, UNSIGNED, apart, zn, parts, indices, *numbers), codegen


def _opened(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Return the arguments with arrays as pointers to their numbers."""
    kinds = zip(signature.args, arguments, strict=True)
    return [make_array(k)(context, builder, a).data if isinstance(k, types.Array) else a for k, a in kinds]


def _places(builder: Any, how: str, count: Any) -> Any:
    """Return for each of eight places whether it is before, at, or up to the one after so many."""
    here = ir.Constant(ir.VectorType(PLACE, SIDE), [ir.Constant(PLACE, i) for i in range(SIDE)])
    return builder.icmp_unsigned(how, here, _same(builder, builder.trunc(count, PLACE)))


def _unsigned(builder: Any, whole: Any, kind: Any) -> Any:
    """Return whole numbers, or a vector of them, with 64 bits."""
    wide = ir.VectorType(WHOLE, SIDE) if isinstance(whole.type, ir.VectorType) else WHOLE
    return whole if whole.type == wide else (builder.sext if kind.signed else builder.zext)(whole, wide)


def _eight(builder: Any, array: Any, j: Any) -> list[Any]:
    """Return eight numbers of an array from the j-th on."""
    return [builder.load(builder.gep(array, [builder.add(j, WHOLE(i))])) for i in range(SIDE)]


def _rest(builder: Any, indices: Any, kind: Any, j: Any, count: Any, bias: Any) -> Any:
    """Return so many indices from the j-th on and the bias after them, as a vector, with zeros at its end."""
    known = _unsigned(builder, _masked(builder, builder.gep(indices, [j]), _places(builder, "<", count)), kind)
    return builder.select(_places(builder, "==", count), _same(builder, bias), known)


def _lay(builder: Any, kinds: list[Any], desk: Any, c: Any, apart: int) -> None:
    """Put vectors on the desk, from place c on and so far apart."""
    for part, kind in enumerate(kinds):
        place = builder.gep(desk, [builder.add(c, WHOLE(part * apart))])
        builder.store(kind, _vector_at(builder, place, SIDE), align=1)


def _put(builder: Any, desk: Any, c: Any, apart: int, parts: int, records: list[Any]) -> None:
    """Store what is on the desk as records, each at once; a fourth number that is room only is 0."""
    places = [builder.gep(desk, [builder.add(c, WHOLE(part * apart))]) for part in range(parts)]
    kinds = [_loaded(builder, place, SIDE) for place in places]
    registers = [_mixed(builder, kinds[0], kinds[1], order) for order in PAIRED]
    owners = [(int(i in HIGH), (HIGH if i in HIGH else LOW).index(i)) for i in range(SIDE)]
    if parts > 2:
        fourth = kinds[3] if parts == 4 else ir.Constant(kinds[0].type, None)
        others = [_mixed(builder, kinds[2], fourth, order) for order in PAIRED]
        halves = zip(registers, others, strict=True)
        registers = [_mixed(builder, one, other, order) for one, other in halves for order in QUARTERS]
        owners = [(i % 4, i // 4) for i in range(SIDE)]
    size = room(parts)
    for record, (owner, nth) in zip(records, owners, strict=True):
        numbers = _mixed(builder, registers[owner], registers[owner], range(size * nth, size * nth + size))
        builder.store(numbers, _vector_at(builder, record, size), align=1)


def _kinds(builder: Any, records: list[Any], parts: int) -> list[Any]:
    """Return the first parts of all records, the second ones, and so on."""
    if parts == 1:
        return [_vector(builder, [builder.load(record) for record in records])]
    return _pairs(builder, records) if parts == 2 else _quads(builder, records, parts)


def _pairs(builder: Any, records: list[Any]) -> list[Any]:
    """Return the first parts of records of two, and the second."""
    loaded = [_loaded(builder, record, 2) for record in records]
    low, high = (_joined(builder, [loaded[i] for i in group]) for group in (LOW, HIGH))
    return [_mixed(builder, low, high, order) for order in SORTED]


def _quads(builder: Any, records: list[Any], parts: int) -> list[Any]:
    """Return the parts of records of three or four, one after the other."""
    loaded = [_loaded(builder, record, 4) for record in records]
    sides = [_joined(builder, [loaded[i], loaded[i + 4]]) for i in range(4)]
    found = []
    for order in PAIRED:
        low, high = (_mixed(builder, sides[k], sides[k + 1], order) for k in (0, 2))
        found += [_mixed(builder, low, high, quarters) for quarters in QUARTERS]
    return found[:parts]


def _masked(builder: Any, place: Any, mask: Any) -> Any:
    """Return the numbers of a vector that a mask has, and zeros; the others are not looked at."""
    kind = ir.VectorType(place.type.pointee, mask.type.count)
    pointer = builder.bitcast(place, kind.as_pointer())
    letter = "i" if isinstance(kind.element, ir.IntType) else "f"
    bits = kind.element.width if letter == "i" else 64 if isinstance(kind.element, ir.DoubleType) else 32
    shape = ir.FunctionType(kind, [pointer.type, PLACE, mask.type, kind])
    name = f"llvm.masked.load.v{kind.count}{letter}{bits}.p0"
    function = cgutils.get_or_insert_function(builder.module, shape, name)
    return builder.call(function, [pointer, PLACE(1), mask, ir.Constant(kind, None)])


def _loaded(builder: Any, place: Any, size: int) -> Any:
    return builder.load(_vector_at(builder, place, size), align=1)


def _vector_at(builder: Any, pointer: Any, size: int) -> Any:
    return builder.bitcast(pointer, ir.VectorType(pointer.type.pointee, size).as_pointer())


def _same(builder: Any, number: Any) -> Any:
    return _vector(builder, [number] * SIDE)


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
