"""What a wrong output looks like: where the wrong elements sit and what relates them to the right ones.

Each pattern becomes a Finding with a stable code; the words that explain it to the model live in the prompt templates.
"""

from __future__ import annotations

import torch

from tools.judge.errors import real, wrong_mask
from tools.types import Finding

SAMPLE = 1 << 24
"""Patterns are looked for in at most this many elements; counts are exact."""

SHARE_EXPLAINED = 0.98
SHARE_NEARER = 0.9


def diagnose(output: torch.Tensor, oracle: torch.Tensor, limit: float, inputs: list[torch.Tensor]) -> list[Finding]:
    """Findings on one wrong output tensor against the oracle, the most telling first. Shapes and dtypes are equal."""
    count = output.numel()
    if count == 0:
        return []
    c, o = real(output)[_lead(output)], real(oracle)[_lead(oracle)].double()
    wrong, c = wrong_mask(c, o, limit), c.double()
    found: list[Finding] = []
    bad = int(wrong.sum())
    if bad == 0:
        return []
    facts: dict[str, str | int | float | bool | list[int] | list[str] | None] = {
        "share_wrong": round(bad / c.numel(), 6),
        "wrong": bad,
        "looked_at": c.numel(),
    }
    nan, inf = int((wrong & torch.isnan(c)).sum()), int((wrong & torch.isinf(c) & ~torch.isinf(o)).sum())
    if nan:
        found.append(
            _finding(
                "nan_output",
                f"{nan} of {c.numel()} elements are NaN",
                **facts,
                nan=nan,
                at=str(_where(torch.isnan(c))["code"]),
            )
        )
    if inf:
        found.append(_finding("inf_output", f"{inf} of {c.numel()} elements are infinite", **facts, inf=inf))
    if finite := int((torch.isfinite(c) & ~torch.isfinite(o)).sum()):
        nans = int((torch.isfinite(c) & torch.isnan(o)).sum())
        summary = f"{finite} of {c.numel()} elements are finite where the right answer is infinite or NaN"
        found.append(_finding("finite_output", summary, **facts, finite=finite, nan_expected=nans))
    usable = torch.isfinite(c) & torch.isfinite(o)
    found.extend(_relations(c, o, usable, limit, facts, inputs))
    place = _where(wrong)
    code = str(place.pop("code"))
    found.append(_finding(code, _sentence(code, facts, place), **facts, **place))
    return found


def _finding(code: str, summary: str, **observed: object) -> Finding:
    return Finding(code=code, summary=summary, observed=observed)  # pyright: ignore[reportArgumentType]


def _lead(tensor: torch.Tensor) -> tuple[slice, ...]:
    """The leading part of a tensor that holds at most SAMPLE elements, whole in every other dimension."""
    if tensor.numel() <= SAMPLE or tensor.dim() == 0:
        return ()
    rest = tensor.numel() // tensor.size(0)
    return (slice(0, max(1, SAMPLE // max(rest, 1))),)


def _relations(
    c: torch.Tensor,
    o: torch.Tensor,
    usable: torch.Tensor,
    limit: float,
    facts: dict[str, str | int | float | bool | list[int] | list[str] | None],
    inputs: list[torch.Tensor],
) -> list[Finding]:
    found: list[Finding] = []
    x, y = c[usable], o[usable]
    if x.numel() < 2:
        return found
    if bool((x == 0).all()):
        return [_finding("all_zeros", "every element is zero", **facts)]
    if float(x.max()) == float(x.min()):
        return [_finding("constant_output", f"every element is {float(x[0]):.6g}", **facts, value=float(x[0]))]
    for tensor in inputs:
        if tensor.numel() == c.numel() and torch.allclose(tensor[_lead(tensor)].double().reshape(-1), c.reshape(-1)):
            found.append(_finding("passes_input_through", "the output equals an input", **facts))
            break
    tolerance = max(4 * limit, 1e-5 * float(y.abs().max()))
    if _explains(-x, x, y, tolerance, share=1.0):
        return [*found, _finding("sign_flipped", "every element has the opposite sign", **facts)]
    offset = (x - y).median()
    if abs(float(offset)) > tolerance and _explains(x - offset, x, y, tolerance):
        found.append(
            _finding("constant_offset", f"off by the constant {float(offset):.6g}", **facts, offset=float(offset))
        )
    factor = float((x * y).sum() / (y * y).sum().clamp_min(1e-300))
    if abs(factor - 1) > 1e-3 and factor and _explains(x / factor, x, y, tolerance / abs(factor)):
        found.append(_finding("constant_factor", f"off by the factor {factor:.6g}", **facts, factor=factor))
    if c.dim() >= 2 and bool(usable.all()):
        a, b = c.shape[-2], c.shape[-1]
        swapped = c.reshape(-1, a * b).reshape(-1, b, a).transpose(-1, -2).reshape(c.shape)
        if a > 1 and b > 1 and _explains(swapped, c, o, tolerance):
            found.append(_finding("swapped_axes", "right if the last two axes were exchanged", **facts))
    return found


def _explains(
    mended: torch.Tensor, got: torch.Tensor, right: torch.Tensor, tolerance: float, share: float = SHARE_EXPLAINED
) -> bool:
    """Whether an output is right once a mistake in all of it is mended. Where the limit is that of a few large elements
    anything is right in the others, but not nearer than what was there."""
    before, after = (got - right).abs(), (mended - right).abs()
    enough = float((after <= tolerance).double().mean()) >= share
    return enough and float((after <= before).double().mean()) > SHARE_NEARER


def _where(wrong: torch.Tensor) -> dict[str, str | int | float | list[int]]:
    """Where the True elements of a mask sit: `code` and the numbers that show it."""
    share = float(wrong.double().mean())
    if share > 0.9:
        return {"code": "everywhere"}
    places: list[dict[str, str | int | float | list[int]]] = []
    for axis in range(wrong.dim()):
        size = wrong.size(axis)
        if size < 2:
            continue
        others = [d for d in range(wrong.dim()) if d != axis]
        line = wrong.double().mean(dim=others) if others else wrong.double()
        hit = torch.nonzero(line > 0).flatten()
        first, last, lines = int(hit[0]), int(hit[-1]), hit.numel()
        facts: dict[str, str | int | float | list[int]] = {"axis": axis, "size": size, "first": first, "last": last}
        if lines == 1:
            places.append({"code": "one_channel", **facts, "density": float(line[first])})
        elif last == size - 1 and lines == last - first + 1 and first > 0 and lines <= max(size // 4, 2):
            places.append({"code": "tile_tail", **facts, "correct_up_to": first})
        elif size >= 8 and lines <= 4 and {int(i) for i in hit} <= {0, 1, size - 2, size - 1}:
            places.append({"code": "border", **facts})
        elif 3 <= lines < size:
            steps = hit[1:] - hit[:-1]
            if int(steps.min()) == int(steps.max()) and int(steps[0]) > 1:
                places.append({"code": "stripe", **facts, "period": int(steps[0])})
    if places:
        order = ("tile_tail", "border", "one_channel", "stripe")
        return min(places, key=lambda p: order.index(str(p["code"])))
    flat = torch.nonzero(wrong.reshape(-1)).flatten()
    tail = wrong.numel() - int(flat[0])
    if flat.numel() == tail:
        return {
            "code": "tile_tail",
            "axis": -1,
            "size": wrong.numel(),
            "first": int(flat[0]),
            "last": wrong.numel() - 1,
        }
    if share < 1e-3:
        return {"code": "few_elements", "first": int(flat[0]), "last": int(flat[-1])}
    return {"code": "scattered", "first": int(flat[0]), "last": int(flat[-1])}


def _sentence(
    code: str,
    facts: dict[str, str | int | float | bool | list[int] | list[str] | None],
    place: dict[str, str | int | float | list[int]],
) -> str:
    share = f"{facts['wrong']} of {facts['looked_at']} elements are wrong"
    axis = f"along axis {place.get('axis')} (size {place.get('size')})"
    return {
        "everywhere": f"{share}: everywhere",
        "tile_tail": f"{share}: from index {place.get('first')} to the end {axis}",
        "one_channel": f"{share}: all at index {place.get('first')} {axis}",
        "border": f"{share}: at the border {axis}",
        "stripe": f"{share}: one index in {place.get('period')} {axis}",
        "few_elements": f"{share}: single elements",
        "scattered": f"{share}: scattered",
    }[code]
