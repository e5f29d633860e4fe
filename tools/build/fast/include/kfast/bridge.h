// The C interface between the thin headers and libtorch. The bridge library implements it with torch's own headers.
//
// Functions may throw C++ exceptions (torch's c10::Error and its kin); they pass through the caller's frames unharmed.
// A tensor is a TensorImpl*, null when undefined. Functions that return one return an owned reference.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct _object;  // PyObject, which nothing here needs to look into

// For what depends on the tensor alone and never throws; a call that may throw must not be optimised away.
#define KFAST_PURE __attribute__((pure))

enum kf_tag {
  KF_NONE,
  KF_TENSOR,         // tensor
  KF_INT,            // i: an int64_t, an enumerator of a dtype, layout or memory format
  KF_DOUBLE,         // d
  KF_BOOL,           // i
  KF_SCALAR_INT,     // i
  KF_SCALAR_DOUBLE,  // d
  KF_SCALAR_BOOL,    // i
  KF_INTS,           // pointer to n int64_t
  KF_DOUBLES,        // pointer to n double
  KF_BOOLS,          // pointer to n bool
  KF_TENSORS,        // pointer to n tensors
  KF_OPTIONAL_TENSORS,
  KF_SCALARS,  // pointer to n kf_value
  KF_STRING,   // pointer to n bytes
  KF_DEVICE    // i: type in the low 32 bits, index above
};

// One argument or result of an operator. In results, KF_TENSORS points to memory that kf_free releases.
struct kf_value {
  int32_t tag;
  int64_t n;
  union {
    int64_t i;
    double d;
    void* tensor;
    const void* pointer;
  };
};

enum kf_error { KF_RUNTIME, KF_INDEX, KF_VALUE, KF_TYPE, KF_NOT_IMPLEMENTED, KF_LINALG };

enum kf_query {
  KF_IS_CONJ,
  KF_IS_NEG,
  KF_IS_SPARSE,
  KF_IS_QUANTIZED,
  KF_IS_META,
  KF_IS_LEAF,
  KF_IS_NESTED,
  KF_IS_INFERENCE,
  KF_IS_VIEW,
  KF_HAS_STORAGE,
  KF_REQUIRES_GRAD,
  KF_USE_COUNT,
  KF_VERSION,
  KF_OVERLAP_FREE,
  KF_SUGGESTED_FORMAT
};

// Room for one of torch's guards.
struct kf_guard {
  alignas(16) char storage[160];
};

// A parameter of a bound function as the bridge needs to know it.
struct kf_parameter {
  const char* name;  // null: positional only
  const char* type;  // for messages
  _object* fallback;  // owned; null: none
};

struct kf_function {
  // Converts the arguments and calls the function. Returns a new reference; KF_TRY_NEXT when an argument does not fit.
  _object* (*call)(const kf_function*, _object* const* arguments, bool convert);
  void (*function)();
  const kf_parameter* parameters;
  int32_t count;
  const char* name;
  const char* doc;
  const char* result;
  int32_t torch_errors;  // as torch::wrap_pybind_function, else as plain pybind11
  int32_t release_gil;
};
#define KF_TRY_NEXT (reinterpret_cast<_object*>(1))

#pragma GCC visibility push(default)  // the thin headers hide everything else
extern "C" {
// Tensors: references and metadata.
void kf_incref(void* t) noexcept;
void kf_decref(void* t) noexcept;
int64_t kf_dim(void* t) KFAST_PURE;
int64_t kf_numel(void* t) KFAST_PURE;
int64_t kf_storage_offset(void* t);
int64_t kf_size(void* t, int64_t d);
int64_t kf_stride(void* t, int64_t d);
const int64_t* kf_sizes(void* t);
const int64_t* kf_strides(void* t);
int32_t kf_dtype(void* t) KFAST_PURE;
int32_t kf_layout(void* t) KFAST_PURE;
int64_t kf_device(void* t);
bool kf_is_contiguous(void* t, int32_t format);
const void* kf_const_data(void* t);
void* kf_mutable_data(void* t);
int64_t kf_query_tensor(void* t, int32_t query);
void kf_set_requires_grad(void* t, bool on);
void* kf_tensor_data(void* t, bool variable);
void* kf_grad(void* t);
char* kf_tensor_text(void* t, bool type_only);

// Operators, by the dispatcher, with the schema's own defaults for arguments that are left out.
void* kf_find_operator(const char* name, const char* overload);
void kf_call_operator(void* handle, const kf_value* arguments, size_t count, kf_value* results, size_t result_count);
void kf_free(void* memory) noexcept;
void* kf_make_variable(void* t, bool requires_grad);
void* kf_from_blob(void* data, const int64_t* sizes, size_t n, const int64_t* strides, bool has_device, int64_t device,
                   int32_t dtype, void (*deleter)(void*), void* context);
void kf_enter(kf_guard* guard, int32_t kind, bool on);
void kf_leave(kf_guard* guard) noexcept;

// Errors, devices, dtypes, threads.
[[noreturn]] void kf_raise(int32_t kind, const char* file, int32_t line, const char* function, const char* text, size_t n);
void kf_warn(const char* file, int32_t line, const char* function, const char* text, size_t n);
const char* kf_error_text(const void* error) noexcept;
int64_t kf_parse_device(const char* text, size_t n);
int32_t kf_default_dtype();
const char* kf_dtype_name(int32_t dtype, size_t* n);
int32_t kf_promote(int32_t a, int32_t b);
int32_t kf_threads(int32_t what);
int32_t kf_swap_thread(int32_t id, bool in_region) noexcept;
bool kf_grad_mode(int32_t set);

// CUDA. All throw when this torch has none.
int32_t kf_cuda_device_count();
void kf_cuda_synchronize(int32_t device);
int32_t kf_cuda_current_device();
int32_t kf_cuda_exchange_device(int32_t device);
void* kf_cuda_stream(int32_t device, int32_t kind, bool high_priority, int64_t* id);
void kf_cuda_set_stream(int64_t id);
const void* kf_cuda_properties(int32_t device);
void kf_cuda_check(int32_t error, const char* file, const char* function, int32_t line, bool assertions);
void* kf_cuda_blas_handle();

// Python. Objects are PyObject*; loaders return false when the object does not fit, and leave no Python error behind.
_object* kf_module(const char* name, void (*fill)(_object* module));
void kf_module_add(_object* module, const kf_function* function);
void kf_module_set(_object* module, const char* name, _object* stolen);
bool kf_load_tensor(_object* o, void** out);
bool kf_load_int(_object* o, bool convert, int64_t* out, uint64_t* unsigned_out);
bool kf_load_double(_object* o, bool convert, double* out);
bool kf_load_bool(_object* o, bool convert, bool* out);
bool kf_load_string(_object* o, const char** text, size_t* n);
bool kf_load_enum(_object* o, int32_t kind, int64_t* out);
bool kf_load_ints(_object* o, int64_t** out, size_t* n);
void* kf_unlock();
void kf_lock(void* state) noexcept;
bool kf_is_none(_object* o) noexcept;
int64_t kf_sequence(_object* o, _object** items, bool convert);
_object* kf_item(_object* items, int64_t index) noexcept;
void kf_release(_object* o) noexcept;
_object* kf_from_tensor(void* t);
_object* kf_from_int(int64_t value);
_object* kf_from_unsigned(uint64_t value);
_object* kf_from_double(double value);
_object* kf_from_bool(bool value);
_object* kf_from_string(const char* text, size_t n);
_object* kf_from_enum(int32_t kind, int64_t value);
_object* kf_none() noexcept;
_object* kf_new_sequence(size_t n, bool tuple);
void kf_put(_object* sequence, size_t index, _object* stolen, bool tuple) noexcept;
}
#pragma GCC visibility pop
