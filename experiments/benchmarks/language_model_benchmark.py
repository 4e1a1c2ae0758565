"""Training steps of the language model: tokens per second."""
import chainer
import numpy as np

from experiments.benchmarks import batches, stock, timing
from interpretable_adv.nn.adam import Adam, GradientClipping
from lm.nets import RNNForLM
from lm.streams import StreamIterator
from lm.updater import TruncatedBPTTUpdater

STREAMS, WINDOW, CUTOFF = 32, 35, (2000, 10000)
CASES = {'256/1024, 87k words': (256, 1024), '256/256, 87k words': (256, 256)}


def corpus():
    """Words whose ids fall with their frequency, as the adaptive softmax wants it."""
    random = np.random.RandomState(0)
    top = np.log(batches.VOCABULARY - 1)
    return np.exp(random.uniform(0, top, 200_000)).astype(np.int32)


def same_loss():
    """The first window's loss is that of stock Chainer with the same parameters."""
    words = np.random.RandomState(0).randint(0, 90, (3, 6)).astype(np.int32)
    old = stock.LanguageModel(90, 8, 32, (10, 40), dropout=0.0)
    new = RNNForLM(90, 32, 8, adaptive_softmax=True, cutoff=(10, 40), dropout=0.0)
    new.embed.copyparams(old.embed)
    for mine, theirs in zip(new.rnn[0].params(), old.rnn[0].params()):
        mine.array[...] = theirs.array
    for name in ('head', 'reduce1', 'tail1', 'reduce2', 'tail2'):
        getattr(new.output, name).array[...] = getattr(old, name).array
    loss, _ = old(words, words, (None, None))
    nll, _ = new(words, words)
    difference = abs(float(nll.array.sum()) / 3 - float(loss.array))
    if difference > 1e-4 * float(loss.array):
        raise RuntimeError(f'losses differ by {difference}: nothing to compare')


def measure(torch_side, repetitions, cases=CASES):
    same_loss()
    text, results = corpus(), []
    for name, (embedding, hidden) in cases.items():
        np.random.seed(0)
        model = RNNForLM(batches.VOCABULARY, hidden, embedding, adaptive_softmax=True,
                         cutoff=CUTOFF)
        optimizer = Adam().setup(model)
        optimizer.add_hook(GradientClipping(5.0))
        updater = TruncatedBPTTUpdater(StreamIterator(text, STREAMS, WINDOW), optimizer)
        reporter = chainer.Reporter()
        reporter.add_observer('main', model)

        def ours(reporter=reporter, updater=updater):
            with reporter.scope({}):
                updater.update()

        old = stock.LanguageModel(batches.VOCABULARY, embedding, hidden, CUTOFF)
        adam, windows = stock.optimizer(old), StreamIterator(text, STREAMS, WINDOW)
        state = [(None, None)]

        def upstream(old=old, adam=adam, windows=windows, state=state):
            state[0] = stock.language_model_step(old, adam, *next(windows), state[0])[1]

        contestants = {'ours': ours}
        if torch_side:
            torch_side('language_model_setup', n_vocab=batches.VOCABULARY, embedding=embedding,
                       hidden=hidden, cutoffs=CUTOFF, streams=STREAMS, time_steps=WINDOW)
            torch_windows = StreamIterator(text, STREAMS, WINDOW)

            def torch_run(windows=torch_windows):
                words, targets = next(windows)
                return torch_side('language_model_run', words=words.tolist(),
                                  targets=targets.tolist())
            contestants['PyTorch'] = torch_run
        times = timing.interleave(contestants, repetitions)
        again = timing.interleave({timing.STOCK: upstream, 'ours': ours},
                                  max(3, repetitions // 3))
        times[timing.STOCK] = again[timing.STOCK]
        ratios = {f'{timing.STOCK} / ours': timing.ratio(again[timing.STOCK], again['ours'])}
        if torch_side:
            ratios['PyTorch / ours'] = timing.ratio(times['PyTorch'], times['ours'])
        results.append({
            'part': 'Language model', 'case': name, 'times': times, 'ratios': ratios,
            'tokens_per_second': {contestant: STREAMS * WINDOW / float(np.median(seconds))
                                  for contestant, seconds in times.items()}})
    return results
