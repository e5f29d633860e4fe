"""Errors of many kinds, and what Python makes of them under load_inline's own bindings."""

import re

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <stdexcept>

#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_CPU(x) AT_ASSERTM(x.device().is_cpu(), #x " must be on the CPU")
#define CHECK_INPUT(x) CHECK_CPU(x); CHECK_CONTIGUOUS(x)

torch::Tensor fail(torch::Tensor x, int kind) {
  switch (kind) {
    case 0: CHECK_INPUT(x); break;
    case 1: throw std::runtime_error("runtime");
    case 2: throw std::out_of_range("range");
    case 3: TORCH_CHECK_INDEX(false, "index ", 3); break;
    case 4: return x.matmul(x);
    case 5: return x.view({7, 7});
    case 6: x.size(5); break;
    case 7: x.data_ptr<double>(); break;
    case 8: AT_ERROR("gone ", 1.25f, " ", x.sizes());
    case 9: TORCH_CHECK_NOT_IMPLEMENTED(false, "not yet"); break;
    case 10: throw 3;
    case 11: return torch::empty({-1});
    case 12: TORCH_CHECK(x.dim() == 9); break;
    case 13: x.accessor<float, 3>(); break;
    case 14: TORCH_CHECK_LT(x.dim(), 1); break;
    case 15: return torch::empty({2}, torch::kCUDA);
    case 16: x.to(torch::kInt).item<float>(); break;
    case 17: TORCH_WARN("careful ", kind); break;
    case 18: return torch::zeros({2, 3}).expand({2, 2});
    case 19: try { return x.view({7, 7}); } catch (const c10::Error& e) { throw std::runtime_error("caught"); }
    case 20: try { TORCH_CHECK(false, "inner"); } catch (const std::exception& e) { return torch::ones(1); }
    default: break;
  }
  return x;
}
"""

ext = load_inline(name="custom_errors", cpp_sources=source, functions=["fail"], extra_cflags=["-O2"])


class ModelNew(nn.Module):
    def forward(self, x):
        import warnings

        out = []
        for kind in range(22):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    out.append(ext.fail(x.t(), kind))
                except Exception as error:
                    text = str(error).split(" INTERNAL")[0].split("Exception raised from")[0].strip()
                    text = re.sub(r"^\[F\d+ .*?\] ", "", text)  # time and place
                    out.append(f"{kind} {type(error).__name__}: {text}")
                out += [str(w.message).split(" (Triggered")[0] for w in caught]
        return out


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(2, 3)]
