"""Watches a Chainer program train: what goes through its links, its losses, its updates."""
import contextlib

import chainer
import chainer.functions as F
import numpy as np

from experiments.upstream_diff.stand_ins import replaced


class Enough(BaseException):
    """Ends a program from within; no `except Exception` of its own catches it."""


class Recorder(chainer.LinkHook):
    """Records the passes of the first step, all losses, and the parameters at both ends.

    Args:
        stop: end the program after this many updates; 0: let it finish.

    Attributes:
        passes: of the first step, `{'ids', 'inputs', 'lengths', 'logits'}` each: word ids, what
            the LSTM read, words per review, and the classifier's outputs.
        neighbors: ids `(N, K)` whose embeddings the first step looked up.
        labels: of the first cross entropy.
        losses, divergences: all cross entropies and all KL divergences in training, in order.
        totals: the loss of each update.
        before, gradients, after_first: of the first update, by the parameters' names.
        target: the model.
    """

    name = 'upstream_diff_recorder'

    def __init__(self, stop=0):
        self.stop = stop
        self.passes, self.neighbors, self.labels = [], None, None
        self.losses, self.divergences, self.totals = [], [], []
        self.updates = 0
        self.before = self.gradients = self.after_first = self.target = None
        self._last = None

    @contextlib.contextmanager
    def watching(self, classifier_module=None):
        """
        Args:
            classifier_module: upstream's `nets`, whose `kl_loss` is VAT's.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(self)
            stack.enter_context(replaced(
                F, 'softmax_cross_entropy', self._noting(F.softmax_cross_entropy, self.losses,
                                                         self._note_labels)))
            if hasattr(classifier_module, 'kl_loss'):
                stack.enter_context(replaced(
                    classifier_module, 'kl_loss',
                    self._noting(classifier_module.kl_loss, self.divergences)))
            stack.enter_context(replaced(chainer.Variable, 'backward', self._backward()))
            stack.enter_context(replaced(chainer.optimizers.Adam, 'update', self._update()))
            yield self

    def forward_postprocess(self, args):
        if self.updates or not chainer.config.train:
            return
        name = args.link.name
        if name == 'word_embed':
            ids = np.array(args.args[0] if args.args else args.kwargs['x'])
            if ids.ndim == 1:
                self.passes.append({'ids': ids})
            else:
                self.neighbors = ids
        elif name == 'uni_lstm':
            inputs = args.kwargs['xs'] if 'xs' in args.kwargs else args.args[2]
            inputs = [chainer.as_array(review) for review in inputs]
            self.passes[-1]['inputs'] = np.concatenate(inputs)
            self.passes[-1]['lengths'] = np.array([len(review) for review in inputs])
        elif name == 'output_layer':
            self.passes[-1]['logits'] = args.out.array.copy()

    def _noting(self, function, values, look=lambda *_: None):
        def noting(*arguments, **options):
            value = function(*arguments, **options)
            if chainer.config.train and value.size == 1:
                values.append(float(value.array))
                look(*arguments)
            return value
        return noting

    def _note_labels(self, *arguments):
        if self.labels is None and len(arguments) > 1:
            self.labels = np.array(chainer.as_array(arguments[1]))

    def _backward(self):
        recorder, backward = self, chainer.Variable.backward

        def noting(variable, *arguments, **options):
            if variable.array.size == 1:
                recorder._last = float(variable.array)
            return backward(variable, *arguments, **options)
        return noting

    def _update(self):
        recorder, update = self, chainer.optimizers.Adam.update

        def noting(optimizer, *arguments, **options):
            if recorder.updates == 0:
                recorder.before = parameters(optimizer.target)
                recorder.gradients = {
                    name: np.zeros_like(parameter.array) if parameter.grad is None
                    else parameter.grad.copy()
                    for name, parameter in _named(optimizer.target)}
            result = update(optimizer, *arguments, **options)
            recorder.updates += 1
            recorder.totals.append(recorder._last)
            recorder.target = optimizer.target
            if recorder.updates == 1:
                recorder.after_first = parameters(optimizer.target)
            if recorder.updates == recorder.stop:
                raise Enough
            return result
        return noting


def _named(model):
    return [(name.lstrip('/'), parameter) for name, parameter in model.namedparams()]


def parameters(model):
    """A copy of all parameters, by name."""
    return {name: parameter.array.copy() for name, parameter in _named(model)}
