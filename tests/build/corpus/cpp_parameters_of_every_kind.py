"""Numbers, strings, flags, lists, dtypes and devices as parameters, with Python's conversions and refusals."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <iostream>
#include <sstream>

std::string show(int a, int64_t b, float c, double d, bool e, std::string f) {
  std::ostringstream out;
  out << a << ' ' << b << ' ' << c << ' ' << d << ' ' << e << ' ' << f;
  return out.str();
}
std::string lists(std::vector<int64_t> a, at::IntArrayRef b, std::vector<double> c, std::vector<std::string> d) {
  std::stringstream out;
  out << a.size() << at::IntArrayRef(a) << b << c.size() << d.size() << (d.empty() ? "" : d[0]);
  return out.str();
}
std::string options(c10::ScalarType t, std::optional<int64_t> n, c10::optional<torch::Tensor> x, torch::Device device) {
  std::ostringstream out;
  out << t << (n ? *n : -1) << x.has_value() << device << torch::dtype(t).dtype();
  return out.str();
}
int narrow(int8_t a, uint8_t b, uint32_t c, uint64_t d) { return a + b + int(c) + int(d); }
std::string scalar(double v) {
  at::Scalar s = v > 2 ? at::Scalar(v) : v > 1 ? at::Scalar(int64_t(v)) : at::Scalar(v > 0);
  return c10::str(s, s.isFloatingPoint(), s.isIntegral(false), s.isBoolean());
}
int64_t device_index(torch::Tensor x) { return x.get_device(); }
"""

ext = load_inline(
    name="parameters",
    cpp_sources=[source],
    functions={"show": "shows", "lists": "", "options": "", "narrow": "n", "scalar": "", "device_index": "d"},
)


def attempt(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


class ModelNew(nn.Module):
    def forward(self, x):
        one = torch.tensor(3)
        return [
            attempt(ext.show, 1, 2**40, 0.5, 1e-300, True, "text"),
            attempt(ext.show, True, np.int64(3), 1, np.float32(2.5), 0, b"bytes"),
            attempt(ext.show, one, one, one, one, None, "é"),
            attempt(ext.show, 2**31, 1, 1, 1, True, ""),
            attempt(ext.show, 1.5, 1, 1, 1, True, ""),
            attempt(ext.show, 1, 1, "1", 1, True, ""),
            attempt(ext.show, 1, 1, 1, 1, True, 5),
            attempt(ext.lists, [1, 2], (3, 4), [0.5, 1], ["a"]),
            attempt(ext.lists, x.shape, list(x.shape), [], []),
            attempt(ext.lists, (i for i in range(3)), (), {}.values(), set()),
            attempt(ext.lists, "ab", (), [], []),
            attempt(ext.lists, [1.5], (), [], []),
            attempt(ext.lists, [1], 5, [], []),
            attempt(ext.options, torch.float16, None, None, torch.device("cpu")),
            attempt(ext.options, torch.int64, 4, x, torch.device("cuda:1")),
            attempt(ext.options, "float16", None, None, torch.device("cpu")),
            attempt(ext.narrow, -128, 255, 7, 2**63),
            attempt(ext.narrow, 128, 0, 0, 0),
            attempt(ext.narrow, 0, -1, 0, 0),
            attempt(ext.narrow, 0, 0, 0, -1),
            attempt(ext.scalar, 1.5),
            attempt(ext.scalar, 2.5),
            attempt(ext.scalar, 0),
            attempt(ext.scalar, "x"),
            attempt(ext.device_index, x),
            attempt(ext.device_index, None),
            attempt(ext.device_index),
        ]


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(2, 3)]
