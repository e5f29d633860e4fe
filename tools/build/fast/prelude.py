"""What a source relies on without including it: standard headers that torch's own headers bring along.

torch's headers include most of the standard library, so models call `std::max` or `printf` without a thought. Parsing
all of it would cost more than the candidate itself; so only the headers of the names that the text uses are included.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z_]\w*")

# Header, and the names that call for it.
_HEADERS = {
    "algorithm": "max min sort stable_sort nth_element partial_sort clamp fill fill_n copy copy_n transform find "
    "find_if any_of all_of none_of count count_if max_element min_element minmax reverse swap_ranges lower_bound "
    "upper_bound binary_search unique remove remove_if for_each equal generate rotate shuffle is_sorted iter_swap",
    "array": "array",
    "atomic": "atomic atomic_int atomic_flag atomic_thread_fence memory_order memory_order_relaxed",
    "bit": "bit_cast popcount countl_zero countr_zero bit_ceil",
    "cassert": "assert",
    "cfloat": "FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON",
    "chrono": "chrono",
    "climits": "INT_MAX INT_MIN LONG_MAX LONG_MIN UINT_MAX LLONG_MAX CHAR_BIT ULONG_MAX",
    "complex": "complex",
    "deque": "deque",
    "exception": "exception exception_ptr current_exception rethrow_exception terminate",
    "functional": "function bind plus multiplies less greater hash reference_wrapper ref cref minus",
    "immintrin.h": "__m128 __m128i __m256 __m256i __m256d __m512 __m512i __m512d",
    "initializer_list": "initializer_list",
    "iomanip": "setprecision setw setfill",
    "iostream": "cout cerr endl cin clog",
    "iterator": "back_inserter distance advance next prev istream_iterator begin end",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "unique_ptr shared_ptr make_unique make_shared weak_ptr addressof align enable_shared_from_this",
    "mutex": "mutex lock_guard unique_lock once_flag call_once scoped_lock recursive_mutex",
    "numeric": "accumulate iota inner_product partial_sum reduce gcd lcm",
    "queue": "queue priority_queue",
    "random": "mt19937 mt19937_64 uniform_real_distribution normal_distribution uniform_int_distribution random_device",
    "set": "set multiset",
    "sstream": "stringstream ostringstream istringstream",
    "stack": "stack",
    "stdexcept": "runtime_error invalid_argument logic_error out_of_range domain_error length_error overflow_error",
    "thread": "thread this_thread",
    "type_traits": "is_same is_same_v enable_if enable_if_t conditional conditional_t decay decay_t is_floating_point",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    "utility": "pair make_pair move forward swap exchange index_sequence make_index_sequence declval",
    "variant": "variant get_if holds_alternative",
    "condition_variable": "condition_variable",
    "future": "async future promise",
    "span": "span",
}
_HEADER_OF = {name: header for header, names in _HEADERS.items() for name in names.split()}
# Names that mean the standard library only behind `std::` (or `using namespace std`): as plain words they are anything.
_ONLY_STD_TEXT = (
    "max min array map set list queue stack deque function pair copy fill find count remove equal transform move "
    "begin end next prev advance get reduce plus less greater hash ref bind complex thread future async span variant "
    "swap round div generate rotate unique reverse atomic exception"
)
_ONLY_STD = set(_ONLY_STD_TEXT.split())
# Always there. math.h and stdlib.h bring the overloads of abs, exp, sqrt … for float into the global namespace: without
# them a plain abs(x) would quietly be the integer one, and exp(x) the double one.
_ALWAYS = ("vector", "string", "optional", "tuple", "cstdint", "cstring", "cstdio", "cmath", "math.h", "stdlib.h")
_FLAGS = {
    "KFAST_USES_HALF": re.compile(r"[Hh]alf|HALF|BF(?:loat|LOAT|16)|REDUCED_FLOATING|kF(?:loat)?16|AND\d?\("),
    "KFAST_USES_FLOAT8": re.compile(r"Float8_e"),
    "KFAST_USES_DISPATCH": re.compile(r"AT_DISPATCH|AT_PRIVATE"),
    "KFAST_USES_PARALLEL": re.compile(r"parallel_for|parallel_reduce|num_threads|thread_num|in_parallel_region|divup"),
    "KFAST_USES_IRANGE": re.compile(r"\birange\b"),
    "KFAST_USES_CUBLAS": re.compile(r"cublas|BlasHandle"),
}


def words(text: str) -> set[str]:
    """Every identifier in `text`, comments and strings included."""
    return set(_WORD.findall(text))


def prelude(text: str, *, cuda: bool) -> str:
    """The text of `kfast_prelude.inc` for a source with all its headers."""
    unqualified = "using namespace std" in text
    used = words(text)
    behind_std = set(re.findall(r"std\s*::\s*(\w+)", text))
    headers: dict[str, None] = dict.fromkeys(_ALWAYS)
    for name in sorted(used):
        header = _HEADER_OF.get(name)
        if header and (name not in _ONLY_STD or unqualified or name in behind_std):
            headers[header] = None
    lines = [f"#include <{header}>" for header in headers]
    if cuda:
        lines.append("#include <cuda_runtime.h>")
        if re.search(r"\bhalf2?\b|__half|__float2half|__half2float|hadd|hmul|hfma|\bh2?exp", text):
            lines.append("#include <cuda_fp16.h>")
        if re.search(r"bfloat16", text):
            lines.append("#include <cuda_bf16.h>")
    if any(name.startswith("omp_") for name in used):
        lines += ["#ifdef _OPENMP", "#include <omp.h>", "#endif"]
    lines += [f"#define {flag} {int(bool(pattern.search(text)))}" for flag, pattern in _FLAGS.items()]
    streams = {"iostream", "sstream", "iomanip"} & headers.keys()
    lines.append(f"#define KFAST_USES_STREAMS {int(bool(streams))}")
    return "\n".join(lines) + "\n"
