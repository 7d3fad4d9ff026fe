# SPDX-License-Identifier: Apache-2.0
"""Compiles Python functions to machine code that Python calls at the cost of a built-in function.

The rest of the package may use the following names only; a test checks this.

registry: `kernel` declares a kernel, with `ADDRESS`, `INT`, `FLOAT` and `OBJECT` as argument types; `KERNELS`
    lists all kernels, each a `Kernel` with `run`, `run_unlocked`, `make` and `load`; `LISTENERS` are notified
    when a kernel is being compiled.
arguments: `array`, `table`, `tuple_of`, `each` declare arguments that are validated on entry to a kernel;
    `Array` and `ArrayTuple` are their types.
trace: `routine`, `subroutine`, `formula`, `apart` for the parts of a kernel; `load`, `store`, `load_int`,
    `store_int`, `memory_at`, `fill_zero` for memory; `split`, `join`, `lane_sum`, `zero_lanes`, `unit_lanes`,
    `square_root`, `nearest`, `fused`, `where_nonzero` for numbers and lanes.
records: `Record` declares a memory layout, with `field`, `constant`, `embedded`, `reference`, `table`,
    `numbers`, `rows` and `constant_rows` of the kinds `INT`, `FLOAT`, `VEC3`, `VEC6`, `MAT3`, `SYM3`,
    `UPPER3`, `tuple_of`; `Placement` computes the offsets of everything a record refers to; `Field`, `Table`
    and `Numbers` are the types.
record_types: `record_at`, `part`, `place`, `words` and `clear` for records inside kernels.
header: `Header`, the first fields of the memory of every kernel.
arrays: `data`, `optional_data`, `is_none`, `is_array`, `is_writeable`, `is_mask`, `mask_at`, `extent`,
    `item`, `length` read the Python objects that a kernel is called with.
types: type aliases such as `Address`, `Int`, `Lanes` and `Vec3`, and the constant `LANES`.
allocation: `new_arrays` allocates several result arrays in one call.
interpreter: `address_of` and `mark_unwritten` for memory that is passed to kernels by address.
disk_cache: `cache_directory` is the directory of the compiled kernels.

`entry`, `argument_checks`, `c_calls` and `self_test` are internal: the call from Python into a kernel, the
validation of its arguments, calls of C functions, and a check that Python, NumPy and numba behave as assumed.
"""
