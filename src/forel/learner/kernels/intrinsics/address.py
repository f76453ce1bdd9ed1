"""Arrays from addresses: passing many arrays to a compiled function takes longer than processing a short row."""

from typing import Any

from numba import carray, types  # type: ignore[attr-defined]
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["carray", "pointer"]


@intrinsic
def pointer(typing_context: Any, address: Any) -> Any:
    """Convert an integer to a pointer."""
    if not isinstance(address, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), codegen
