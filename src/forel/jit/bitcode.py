"""LLVM bitcode of functions before optimization, from which machine code for any processor is generated without numba.

Most of the time of compiling is numba's part, whose result does not depend on the processor. With bitcode in the code
cache, a container image that was made on another processor, or a folder that different machines share, saves that part.
"""

from typing import Any

from forel.jit.key import processor

__all__ = ["keep", "machine_code", "parsed", "unoptimized"]

ATTRIBUTE = "forel_bitcode"
PASSES = {"speed_level": 3, "loop_vectorization": True, "slp_vectorization": False}
INLINING = {"speed_level": 0, "loop_vectorization": False, "slp_vectorization": False}  # before references are removed


def unoptimized(library: Any) -> bytes | None:
    """Return the bitcode of numba's library that was kept before it was optimized; None if there is none."""
    return getattr(library, ATTRIBUTE, None)


def keep(library: Any) -> None:
    """Keep the bitcode of numba's library, linked and not yet optimized; not of versions with other passes."""
    if hasattr(library._codegen, "_pass_builder"):  # LLVM's new pass manager, which machine_code uses
        setattr(library, ATTRIBUTE, library._final_module.as_bitcode())


def parsed(bitcode: bytes) -> Any:
    """Return the LLVM module of bitcode."""
    from llvmlite import binding

    return binding.parse_bitcode(bitcode)


def machine_code(module: Any) -> bytes:
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
    for options in (INLINING, PASSES):
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
