// line 6: not_bindable
#include <pybind11/pybind11.h>
namespace torch { template <typename F> auto wrap_pybind_function(F f) { return f; } }
int f(int);
int f(float);
PYBIND11_MODULE(m, m) { m.def("f", torch::wrap_pybind_function(f)); }
