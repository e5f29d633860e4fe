"""Brings its own PYBIND11_MODULE: documentation, argument names, defaults, an overload, a lambda."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <pybind11/pybind11.h>
namespace py = pybind11;

namespace mine {
torch::Tensor affine(torch::Tensor x, float scale, float shift) { return x.mul(scale).add_(shift); }
int twice(int v) { return 2 * v; }
double twice(double v) { return 2 * v + 0.25; }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "what it is for";
  m.def("affine", &mine::affine, "scale and shift", py::arg("x"), py::arg("scale") = 1.5f, py::arg("shift") = 0.f);
  m.def("twice", py::overload_cast<int>(&mine::twice));
  m.def("twice", py::overload_cast<double>(&mine::twice));
  m.def("count", [](const torch::Tensor& x) { return x.numel(); }, py::call_guard<py::gil_scoped_release>());
  m.def("throws", [](int kind) {
    if (kind == 0) throw std::out_of_range("far");
    if (kind == 1) throw std::invalid_argument("bad");
    throw std::runtime_error("plain");
  });
  m.def("shifted", [](const torch::Tensor& x, c10::optional<torch::Tensor> by) { return by ? x + *by : x; },
        py::arg("x"), py::arg("by") = py::none());
  m.attr("answer") = 42;
}
"""

ext = load_inline(name="own_module", cpp_sources=source)


def kind_of(call, *args, **kwargs):
    try:
        return call(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class ModelNew(nn.Module):
    def forward(self, x):
        return (
            ext.affine(x),
            ext.affine(x, shift=2),
            ext.affine(scale=3, x=x),
            ext.twice(3),
            ext.twice(1.5),
            ext.twice(True),
            ext.count(x),
            [kind_of(ext.throws, k) for k in range(3)],
            kind_of(ext.affine, x, bogus=1).split("\n")[0],
            kind_of(ext.twice, "3").split("\n")[0],
            ext.shifted(x),
            ext.shifted(x, by=x),
            ext.answer,
            ext.__doc__,
            ext.affine.__name__,
        )


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(7)]
