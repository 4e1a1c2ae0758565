"""A class-conditional language model as what guides an attack: the gradient of λ log p(x|y)."""
import chainer
import numpy as np

from interpretable_adv.errors import UserError
from interpretable_adv.nn import functions
from interpretable_adv.runs import folder
from lm.nets import load_lm


class Guide:
    """Function of reviews, their classes and a perturbation, as `attacks.Guide` describes it.

    The perturbation is added to the model's own input vectors; the words to be predicted stay the
    original ones, `<eos>` included. `log p(x|y)` is summed over a review's words. Without dropout.

    Args:
        model: a class-conditional `RNNForLM`.
        weight: λ.
    """

    def __init__(self, model, weight=1.0):
        self.model, self.weight = model, weight

    def __call__(self, ids, lengths, labels, perturbation):
        """The gradient `(N, n_units_word)` of the sum over reviews of `λ log p(x|y)` with respect
        to the perturbation `(N, n_units_word)`; 0 at a review's last word, which is no input."""
        model, xp = self.model, self.model.xp
        gradient = xp.zeros_like(perturbation)
        lengths = np.asarray(lengths)
        inputs = np.delete(np.arange(lengths.sum()), np.cumsum(lengths) - 1)
        counts = lengths[lengths > 1] - 1
        if not len(inputs):
            return gradient
        rows = xp.asarray(inputs)
        classes = labels[xp.asarray(np.repeat(np.arange(len(lengths)), lengths - 1))]
        added = chainer.Variable(perturbation[rows])
        with chainer.using_config('train', False):
            vectors = model.embed.W.array[ids[rows]] + model.class_embed.W.array[classes]
            nll, _ = model.score(vectors + added, chainer.cuda.to_cpu(ids)[inputs + 1], counts)
            found = chainer.grad([functions.total(nll)], [added])[0].array
        gradient[rows] = -self.weight * found
        return gradient


def find_guide(settings, corpus, emb_dim, device):
    """The guide that an attack's settings name, or None; the random stream is left alone.

    Args:
        settings: `AttackSettings`.
        corpus: whose vocabulary and classes the language model must have.
        emb_dim: size of the classifier's word vectors, which it must have as well.
    """
    if not settings.class_lm:
        return None
    path = folder.model_file(settings.class_lm)
    state = np.random.get_state()
    model = load_lm(path, corpus.words, class_conditional=True)
    np.random.set_state(state)
    if model.n_class != corpus.n_class:
        raise UserError(f'{path} has {model.n_class} classes, the corpus {corpus.n_class}; use the '
                        'data folder it was trained with')
    size = model.embed.W.shape[1]
    if size != emb_dim:
        raise UserError(f'{path} has word vectors of {size}, the classifier of {emb_dim}; the '
                        'perturbation of one must fit the other: give models of the same size')
    model.to_device(device)
    return Guide(model, settings.class_lm_weight)
