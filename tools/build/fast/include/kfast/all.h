// Everything that torch/extension.h stands for here. The standard headers that the source uses without including them,
// since torch's own headers bring them along, and the operators that it names are listed in files made per build.
#pragma once

#include <kfast_prelude.inc>

#include <kfast/macros.h>
#if KFAST_USES_HALF
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>
#endif
#if KFAST_USES_FLOAT8
#include <torch/headeronly/util/Float8_e4m3fn.h>
#include <torch/headeronly/util/Float8_e5m2.h>
#endif

#pragma GCC visibility push(hidden)
#include <kfast/torch_namespace.h>
#include <kfast_ops.inc>
#include <kfast/module.h>
#if KFAST_USES_HALF
inline c10::Scalar::Scalar(const c10::Half& v) : Scalar(static_cast<float>(v)) {}
inline c10::Scalar::Scalar(const c10::BFloat16& v) : Scalar(static_cast<float>(v)) {}
#endif
#if KFAST_USES_STREAMS
#include <kfast/streams.h>
#endif
#pragma GCC visibility pop

#if KFAST_USES_DISPATCH
#include <kfast/dispatch.h>
#endif
#if KFAST_USES_PARALLEL
#include <kfast/parallel.h>
#endif
#if KFAST_USES_IRANGE
#include <kfast/irange.h>
#endif
