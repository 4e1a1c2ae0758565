"""Chainer's Adam and gradient clipping with the same numbers, in fewer passes over memory."""
import math

import chainer
import numpy as np
from chainer.optimizers import adam as stock

from interpretable_adv.nn import kernels
from interpretable_adv.nn.embedding import RowParameter

BLOCK = 1 << 16  # values that the NumPy path works on at a time: these stay in the cache


class Adam(chainer.optimizers.Adam):
    """`chainer.optimizers.Adam`; its state is serialised in the same way.

    On a CPU a float32 parameter is updated in place, in one pass. An embedding's gradient may
    come as the rows that the batch touched; all other rows have a gradient of zero, and move
    on by their momentum. On a GPU, and for AMSGrad, AdaBound or weight decay, Chainer's own
    code runs.
    """

    def setup(self, link):
        super().setup(link)
        for parameter in link.params():
            if isinstance(parameter, RowParameter):
                parameter.keeps_rows = True
        return self

    def create_update_rule(self):
        return AdamRule(self.hyperparam)

    def serialize(self, serializer):
        reads = isinstance(serializer, chainer.serializer.Deserializer)
        rules = [(parameter.update_rule, parameter) for parameter in self.target.params()
                 if parameter.update_rule.enabled]
        if reads:
            # So that m and v have their shapes; Chainer would take over those of the file.
            for rule, parameter in rules:
                rule._init_states(parameter)
        super().serialize(serializer)
        if reads and not all(rule.t == self.t and rule.state['v'].min() >= 0
                             for rule, _ in rules):
            raise ValueError('the state of Adam is none that training leads to')

    def reallocate_cleared_grads(self):
        # Chainer replaces gradients that are None by zeros. Those kept as rows must stay so.
        for parameter in self.target.params(False):
            if _row_gradient(parameter) is None and parameter.grad is None:
                parameter.grad = parameter.xp.zeros_like(parameter.array)


class AdamRule(stock.AdamRule):
    """The update of one parameter."""

    _active = None  # rows with any m or v that is not zero; None: not known

    def serialize(self, serializer):
        super().serialize(serializer)
        self._active = None

    def update_core_cpu(self, param):
        rows = _row_gradient(param)
        if not self._is_plain(param):
            super().update_core_cpu(param)
            return
        hp = self.hyperparam
        self._check_eps(np.float32)
        m, v = self.state['m'], self.state['v']
        # The kernel and NumPy round these to float32, at that one place.
        constants = (1 - hp.beta1, 1 - hp.beta2, self._alpha(), hp.eps, hp.eta)
        if rows is None:
            self._active = None
            if param.grad is not None:
                gradient = np.ascontiguousarray(param.grad)
                update = kernels.adam if kernels.available else adam_in_blocks
                update(param.array, m, v, gradient, *constants)
            return
        ids, gradient = rows
        if self._active is None:
            self._active = (m.any(axis=1) | v.any(axis=1)).astype(np.uint8)
        if kernels.available:
            kernels.adam(param.array, m, v, gradient, *constants, ids, self._active)
        else:
            self._active[ids] = 1
            adam_rows_in_blocks(param.array, m, v, gradient, *constants, ids, self._active)

    def _alpha(self):
        """Chainer's `alpha_t`, by operations that are the same everywhere; `pow` is not."""
        hp = self.hyperparam
        return hp.alpha * math.sqrt(1 - _power(hp.beta2, self.t)) / (1 - _power(hp.beta1, self.t))

    def _is_plain(self, param):
        hp = self.hyperparam
        return (not hp.amsgrad and not hp.adabound and hp.weight_decay_rate == 0
                and all(isinstance(array, np.ndarray) and array.dtype == np.float32
                        and array.flags.c_contiguous
                        for array in (param.array, self.state['m'], self.state['v'])))


def adam_in_blocks(parameter, m, v, gradient, one_minus_beta1, one_minus_beta2, alpha, epsilon,
                   eta):
    """One step of Adam in place, on NumPy, with Chainer's operations in Chainer's order.

        m += (1 - beta1) (g - m)      v += (1 - beta2) (g² - v)
        parameter += -eta · (alpha / (√v + epsilon) · m)
    """
    parameter, m, v, gradient = (a.reshape(-1) for a in (parameter, m, v, gradient))
    buffer = np.empty(min(BLOCK, len(parameter)), np.float32)
    for start in range(0, len(parameter), BLOCK):
        part = slice(start, start + BLOCK)
        g, m_part, v_part = gradient[part], m[part], v[part]
        step = buffer[:len(g)]
        np.subtract(g, m_part, out=step)
        step *= one_minus_beta1
        m_part += step
        np.multiply(g, g, out=step)
        step -= v_part
        step *= one_minus_beta2
        v_part += step
        np.sqrt(v_part, out=step)
        step += epsilon
        np.divide(alpha, step, out=step)
        step *= m_part
        step *= -eta
        parameter[part] += step


def adam_rows_in_blocks(parameter, m, v, gradient, one_minus_beta1, one_minus_beta2, alpha,
                        epsilon, eta, ids, active):
    """`adam_in_blocks` for a gradient of the rows `ids` only; inactive rows do not move."""
    rows = max(1, BLOCK // parameter.shape[1])
    whole = np.zeros((rows, parameter.shape[1]), np.float32)
    starts = np.arange(0, len(parameter), rows)
    bounds = np.searchsorted(ids, np.append(starts, len(parameter)))
    used = np.logical_or.reduceat(active, starts)
    for start, first, last in zip(starts[used], bounds[:-1][used], bounds[1:][used]):
        stop = min(start + rows, len(parameter))
        inside = ids[first:last] - start
        whole[inside] = gradient[first:last]
        adam_in_blocks(parameter[start:stop], m[start:stop], v[start:stop], whole[:stop - start],
                       one_minus_beta1, one_minus_beta2, alpha, epsilon, eta)
        whole[inside] = 0


class GradientClipping(chainer.optimizer_hooks.GradientClipping):
    """`chainer.optimizer_hooks.GradientClipping` that leaves gradients kept as rows so.

    All gradients are multiplied by threshold / norm where their common norm is larger.
    """

    def __call__(self, opt):
        parameters = list(opt.target.params(False))
        if any(not isinstance(parameter.array, np.ndarray) for parameter in parameters):
            super().__call__(opt)
            return
        gradients = [parameter.grad if rows is None else rows[1]
                     for parameter, rows in ((p, _row_gradient(p)) for p in parameters)]
        norm = math.sqrt(math.fsum(map(_square_sum, gradients)))  # exact in any order
        if norm <= self.threshold:
            return
        for gradient in gradients:  # with a rate of NaN, too: the loss is not finite then
            gradient *= self.threshold / norm


def _square_sum(array):
    if kernels.available and array.dtype == np.float32 and array.flags.c_contiguous:
        return kernels.square_sum(array)
    flat = array.ravel()
    return float(flat.dot(flat))


def _power(base, exponent):
    """`base ** exponent` for a whole exponent, by squaring."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


def _row_gradient(parameter):
    return parameter.row_gradient() if isinstance(parameter, RowParameter) else None
