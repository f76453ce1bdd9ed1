"""Shortcuts in numba's passes over intermediate code.

- Lifetimes of variables are computed only where deletions are inserted.
- The intermediate code of a function that is inlined is not copied: numba has just made it for this one call.
- The variables of a statement are listed by type of their container, without recursion into leaves.
- A variable with several definitions is replaced in the statements that define or use it, and others are not visited.
- Deletions of variables are not searched for after each pass, which never leaves any.
- Passes for closures and for expressions of arrays are left out of functions that have none.
"""

import copy
from collections.abc import Callable
from types import NoneType, SimpleNamespace
from typing import Any

import numpy as np
from numba.core import compiler_machinery, inline_closurecall, ir, ir_utils, postproc, ssa, transforms, types
from numba.core.rewrites import registry
from numba.core.typed_passes import NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

from forel.jit.shortcuts.shortcut import Method, Shortcut

__all__ = ["SHORTCUTS"]

canonicalize: Any = getattr(transforms, "canonicalize_cfg", None)
lifetime: Any = getattr(postproc, "VariableLifetime", None)
inlining: Any = inline_closurecall
processor: Any = postproc.PostProcessor
rewrites: Any = registry.rewrite_registry
new_block: Any = ir.Block
define_variables: Any = getattr(ir_utils, "fixup_var_define_in_scope", None)
NO_COPIES = SimpleNamespace(copy=copy.copy, deepcopy=lambda block: block)
LEAVES = frozenset({ir.Loc, ir.Scope, str, int, float, bool, NoneType, type(len), type(ir.UNDEFINED)})
CLOSURES = frozenset({"make_function", "build_list"})  # a comprehension is one or the other
# Rewrites of typed code: of arrays, of lists that become arrays, and of records indexed by strings.
REWRITES = {"RewriteArrayExprs", "RewriteArrayOfConsts", "RewriteStringLiteralGetitems", "RewriteStringLiteralSetitems"}
REDUCTIONS = frozenset({"reduce", "stencil", "StencilFunc"})


def _lifetimes_where_needed(post_process: Callable[..., Any]) -> Callable[..., Any]:
    def lifetimes_where_needed(own: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        function = own.func_ir
        if emit_dels or function.is_generator:
            post_process(own, emit_dels, extend_lifetimes)
            return
        function.blocks = canonicalize(function.blocks)
        function.variable_lifetime = lifetime(function.blocks)  # computed when it is used
        function.generator_info = None

    return lifetimes_where_needed


def _inline_without_copies(inline: Callable[..., Any]) -> Callable[..., Any]:
    def inline_without_copies(worker: Any, caller: Any, block: Any, i: int, function: Any, args: Any = None) -> Any:
        code, copying = worker.run_untyped_passes(function), inlining.copy
        inlining.copy = NO_COPIES
        try:
            return worker.inline_ir(caller, block, i, code, function.__code__.co_freevars, arg_typs=args)
        finally:
            inlining.copy = copying

    return inline_without_copies


def _variables_by_type(list_variables: Callable[..., Any]) -> Callable[..., Any]:
    variable, kinds = ir.Var, (list, tuple)

    def variables(statement: Any, value: Any) -> list[Any]:
        kind = type(value)
        if kind is not dict and kind not in kinds:
            return list_variables(statement, value)  # type: ignore[no-any-return]
        found = []
        for each in value.values() if kind is dict else value:
            kind = type(each)
            if kind is variable:
                found.append(each)
            elif kind not in LEAVES:
                found += variables(statement, each)
        return found

    return variables


def _rewrite_where_named(rewrite: Callable[..., Any]) -> Callable[..., Any]:
    def rewrite_where_named(blocks: Any, states: Any, handler: Any) -> Any:
        name, kind, assign = states["varname"], type(handler), ir.Assign
        if kind is ssa._FreshVarHandler:

            def concerned(statement: Any) -> bool:
                return type(statement) is assign and statement.target.name == name
        elif kind is ssa._FixSSAVars:
            variables = handler._cache_list_vars.get

            def concerned(statement: Any) -> bool:
                read = statement.value if type(statement) is assign else statement
                if type(read) is ir.Var:
                    return bool(read.name == name)
                return isinstance(read, ir.Inst) and any(each.name == name for each in variables(read))
        else:
            return rewrite(blocks, states, handler)
        rewritten = {}
        for label, block in blocks.items():
            states["label"], states["block"] = label, block
            new = rewritten[label] = new_block(scope=block.scope, loc=block.loc)
            for statement in block.body:
                if concerned(statement):
                    visit = handler.on_assign if isinstance(statement, assign) else handler.on_other
                    statement = visit(states, statement)
                new.body.append(statement)
        return rewritten

    return rewrite_where_named


def _no_search(enforce: Callable[..., Any]) -> Callable[..., Any]:
    return lambda code: None


def _has_closures(blocks: Any) -> bool:
    """Return whether a function has closures, comprehensions, lists, reductions or stencils."""
    for block in blocks.values():
        for statement in block.body:
            value = getattr(statement, "value", None)
            if isinstance(value, ir.Expr):
                if value.op in CLOSURES or (value.op == "getattr" and value.attr in REDUCTIONS):
                    return True
            elif isinstance(value, ir.Global | ir.FreeVar):
                names = getattr(value.value, "__name__", None), type(value.value).__name__
                if not REDUCTIONS.isdisjoint(names):
                    return True
    return False


def _only_closures(run: Callable[..., Any]) -> Callable[..., Any]:
    def inline_closures(own: Any, state: Any) -> bool:
        code = state.func_ir
        if _has_closures(code.blocks):
            return run(own, state)  # type: ignore[no-any-return]
        processor(code).run()
        define_variables(code.blocks)
        return True

    return inline_closures


def _needs_rewrites(state: Any) -> bool:
    """Return whether an operator or a ufunc of a function returns an array, or it has lists or strings."""
    if any(isinstance(each, types.List | types.StringLiteral) for each in state.typemap.values()):
        return True
    for expression, signature in state.calltypes.items():
        if signature is not None and isinstance(signature.return_type, types.Array):
            operation = getattr(expression, "op", None)
            if operation in ("unary", "binop"):
                return True
            if operation == "call":
                key = getattr(state.typemap.get(expression.func.name), "typing_key", None)
                if isinstance(key, np.ufunc) or type(key).__name__ == "DUFunc":
                    return True
    return False


def _rewrite_where_needed(run: Callable[..., Any]) -> Callable[..., Any]:
    def rewrite_where_needed(own: Any, state: Any) -> bool:
        known = REWRITES.issuperset(each.__name__ for each in rewrites.rewrites["after-inference"])
        return True if known and not _needs_rewrites(state) else bool(run(own, state))

    return rewrite_where_needed


SHORTCUTS = (
    Shortcut(
        (Method(processor, "run", ("self", "emit_dels", "extend_lifetimes"), _lifetimes_where_needed),),
        ((postproc, "VariableLifetime"), (transforms, "canonicalize_cfg")),
    ),
    Shortcut(
        (
            Method(
                inline_closurecall.InlineWorker, "inline_function",
                ("self", "caller_ir", "block", "i", "function", "arg_typs"), _inline_without_copies,
            ),
        ),
        (
            (inline_closurecall, "copy"),
            (inline_closurecall.InlineWorker, "inline_ir"),
            (inline_closurecall.InlineWorker, "run_untyped_passes"),
        ),
    ),
    Shortcut((Method(ir.Inst, "_rec_list_vars", ("self", "val"), _variables_by_type),)),
    Shortcut(
        (Method(ssa, "_run_block_rewrite", ("blocks", "states", "handler"), _rewrite_where_named),),
        ((ssa, "_FreshVarHandler"), (ssa, "_FixSSAVars"), (ssa, "_CacheListVars")),
    ),
    Shortcut((Method(compiler_machinery, "enforce_no_dels", ("func_ir",), _no_search),)),
    Shortcut(
        (Method(InlineClosureLikes, "run_pass", ("self", "state"), _only_closures),),
        ((ir_utils, "fixup_var_define_in_scope"),),
    ),
    Shortcut(
        (Method(NopythonRewrites, "run_pass", ("self", "state"), _rewrite_where_needed),),
        ((rewrites, "rewrites"),),
    ),
)  # fmt: skip
