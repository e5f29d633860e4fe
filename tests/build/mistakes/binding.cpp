// line 6: undeclared_name
#include <pybind11/pybind11.h>
namespace torch { template <typename F> auto wrap_pybind_function(F f) { return f; } }
struct S { S(const S&) = delete; };
int f(int);
PYBIND11_MODULE(m, m) { m.def("f", &missing); }
