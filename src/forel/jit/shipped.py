"""LLVM code of kernels as a part of the package, from which their first use generates machine code without numba.

``make build`` writes it into the wheel, a file for each kernel and key: other sources and other versions of Python,
numpy, numba or llvmlite have other keys, and kernels are compiled as without it. It does not depend on the processor,
because the processes of the build do not optimize: they run with NUMBA_OPT=0 and the folder for these files in
FOREL_LLVM. The folder of the package is trusted as the modules next to it are, and is only read.
"""

import os
import pathlib
from typing import Any

from forel.jit.key import portable_key, processor

__all__ = ["FOLDER", "UNOPTIMIZED", "export", "machine_code"]

FOLDER = pathlib.Path(__file__).with_name("llvm")
UNOPTIMIZED = "FOREL_LLVM"
ADDRESSES = "numba.dynamic.globals"
FULL = {"speed_level": 3, "loop_vectorization": True, "slp_vectorization": False}
INLINING = {"speed_level": 0, "loop_vectorization": False, "slp_vectorization": False}  # before references are removed


def export(parts: tuple[Any, ...], names: bytes, assembly: str) -> None:
    """Write the LLVM code of a function, and the names of its wrapper and environment, for the wheel that is built.

    Code that still has addresses of this process is left out.
    """
    import lzma

    assembly = _without_dead_code(assembly)
    if ADDRESSES in assembly:
        return
    folder = pathlib.Path(os.environ[UNOPTIMIZED])
    folder.mkdir(parents=True, exist_ok=True)
    # Assembly compresses to half of what bitcode does.
    _path(folder, *parts).write_bytes(lzma.compress(names + b"\n" + assembly.encode(), preset=9))


def machine_code(*parts: Any) -> bytes | None:
    """Return the names of wrapper and environment, and machine code of a function; None if the package has none."""
    path = _path(FOLDER, *parts)
    if not path.is_file():
        return None
    import lzma  # not part of every Python; whoever calls compiles then

    from llvmlite import binding

    names, assembly = lzma.decompress(path.read_bytes()).split(b"\n", 1)
    return names + b"\n" + _optimized(binding.parse_assembly(assembly.decode()))


def _without_dead_code(assembly: str) -> str:
    """Return LLVM code without what no processor needs, such as addresses of Python objects."""
    from llvmlite import binding

    binding.initialize_native_target()
    module = binding.parse_assembly(assembly)
    machine: Any = binding.Target.from_triple(binding.get_process_triple()).create_target_machine()
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=0))
    passes = builder.getModulePassManager()
    passes.add_instruction_combine_pass()
    passes.add_dead_code_elimination_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    return str(module)


def _optimized(module: Any) -> bytes:
    """Return machine code of an LLVM module for the target processor, optimized by the same passes as in numba."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    name, features = processor()
    target = binding.Target.from_triple(binding.get_process_triple())
    machine: Any = target.create_target_machine(
        cpu=name,
        features=features,
        opt=3,
        reloc="static" if target.name.startswith("x86") else "default",
        codemodel="jitdefault",
        jit=True,
    )
    for options in (INLINING, FULL):
        tuning: Any = binding.create_pipeline_tuning_options()
        for option, value in options.items():
            setattr(tuning, option, value)
        builder = binding.create_pass_builder(machine, tuning)
        passes = builder.getModulePassManager()
        if options is INLINING:
            passes.add_loop_rotate_pass()
            passes.add_instruction_combine_pass()
            passes.add_jump_threading_pass()
        passes.add_refprune_pass(binding.RefPruneSubpasses.ALL)
        passes.run(module, builder)
    code: bytes = machine.emit_object(module)
    return code


def _path(folder: pathlib.Path, name: str, *parts: Any) -> pathlib.Path:
    return folder / f"{name}-{portable_key(name, *parts)[:20]}.xz"
