"""Language models from their checkpoints, of whatever size they are."""
from interpretable_adv import checkpoints
from interpretable_adv.cli import UserError
from lm.nets import RNNForLM


def sizes(arrays, path):
    """The arguments of `RNNForLM`, read off a checkpoint's shapes."""
    try:
        n_vocab, n_units_word = arrays['embed/W'].shape
        n_units = len(arrays['rnn/0/b0'])
        found = {'n_vocab': n_vocab, 'n_units': n_units, 'n_units_word': n_units_word,
                 'n_layers': checkpoints.count_layers(arrays, 'rnn'),
                 'adaptive_softmax': 'output/head' in arrays,
                 'share_embedding': not {'output/W', 'output/head'} & set(arrays)}
        if found['adaptive_softmax']:
            found['cutoff'] = [int(bound) for bound in arrays['output/cutoff'][1:-1]]
            found['reduce_k'] = max(1, n_units // len(arrays['output/reduce1']))
    except (KeyError, ValueError):
        raise UserError(f'{path} is not a language model: it lacks embed/W, rnn/0/b0 or the '
                        'output layer; give a model that lm.pretrain wrote') from None
    return found


def load_lm(path, words=None):
    """The language model of a checkpoint, without dropout.

    Building it draws its initial weights from NumPy's global stream, as upstream does before it
    reads a checkpoint.

    Args:
        words: the corpus's vocabulary, to be checked against the checkpoint's.
    """
    arrays = checkpoints.read_arrays(path)
    arguments = sizes(arrays, path)
    if words is not None:
        checkpoints.check_vocabulary(path, arguments['n_vocab'], words)
    model = RNNForLM(dropout=0, **arguments)
    checkpoints.assign(model, arrays, path)
    return model
