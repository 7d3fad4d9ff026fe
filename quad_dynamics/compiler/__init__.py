# SPDX-License-Identifier: Apache-2.0
"""Turns functions of Python into machine code that Python calls at the cost of a built-in function.

The rest of the package uses these names, and no others (a test looks):

registry: `kernel` declares one, with `ADDRESS`, `INT`, `FLOAT`, `OBJECT` for its arguments; `KERNELS` lists
    them, each a `Kernel` with `run`, `run_unlocked`, `make` and `load`; `LISTENERS` are told what is being
    compiled.
arguments: `array`, `table`, `tuple_of`, `each` for arguments that are checked on the way into a kernel;
    `Array`, `ArrayTuple` are what they return.
trace: `routine`, `subroutine`, `formula`, `apart` for parts of a kernel; `load`, `store`, `load_int`,
    `store_int`, `memory_at`, `fill_zero` for memory; `split`, `join`, `lane_sum`, `zero_lanes`, `unit_lanes`,
    `square_root`, `nearest`, `fused`, `where_nonzero` for numbers and lanes.
records: `Record` declares what stands in memory, with `field`, `embedded`, `reference`, `table`, `numbers`
    and `rows` of the kinds `INT`, `FLOAT`, `VEC3`, `VEC6`, `MAT3`, `SYM3`, `UPPER3`, `tuple_of`; `Placement`
    places it; `Field`, `Table` and `Numbers` are their types.
record_types: `record_at`, `part`, `place`, `words` and `clear` for records inside kernels.
header: `Header` is what the memory of every kernel begins with.
arrays: `data`, `optional_data`, `is_none`, `is_array`, `is_writeable`, `is_mask`, `mask_at`, `extent`,
    `item`, `length` look into the Python objects that a kernel is called with.
types: names for the reader, such as `Address`, `Int`, `Lanes` and `Vec3`, and `LANES`.
allocation: `new_arrays` makes results of several arrays.
interpreter: `address_of` and `mark_unwritten` for memory that kernels get by its address.
disk_cache: `cache_directory` is where compiled kernels are kept.

`entry`, `argument_checks`, `c_calls` and `self_test` are the compiler's own: the way from Python into a
kernel, what is checked on it, calls of C functions, and whether Python, NumPy and numba are as it assumes.
"""
