"""The first steps of a training of preset `paper`: python -m tests.experiments.paper_steps adv 20 8

Model, vocabulary, batch size and all flags are the preset's. The reviews are random ids, and about
as long as the last argument says: 242 words is IMDB's mean. Prints a line of JSON with the losses,
the processor's seconds and the peak of the memory in bytes.
"""
import json
import pathlib
import resource
import sys
import tempfile
import time

import numpy as np

from experiments import plan as plans
from experiments import presets
from interpretable_adv import data, train
from interpretable_adv.runs import devices, distributed
from lm import pretrain, streams

N_VOCAB, TRAIN_VOCAB = 87008, 66825  # of IMDB
SEED = 1


def make_corpus(n_reviews, mean_length):
    """Reviews whose lengths are spread like IMDB's, about `mean_length` words; `N_VOCAB` words."""
    random = np.random.RandomState(0)
    lengths = np.clip(random.lognormal(np.log(mean_length * 0.78), 0.62, n_reviews), 4,
                      10 * mean_length).astype(int)
    # Word ids grow with the first occurrence; frequent words come early, as Zipf's law has it.
    parts = []
    for length in lengths:
        ids = np.minimum(random.zipf(1.2, length) + 1, N_VOCAB - 1).astype(np.int32)
        parts += [np.where(ids < 2, 2, ids), np.zeros(1, np.int32)]
    words = data.SPECIALS + [f'w{number}' for number in range(2, N_VOCAB)]
    counts = [n_reviews // 4, n_reviews - 2 * (n_reviews // 4), n_reviews // 8,
              n_reviews // 4 - n_reviews // 8]
    labels = np.arange(sum(counts[1:]), dtype=np.int32) % 2
    return data.Corpus(np.concatenate(parts), counts, labels, words, TRAIN_VOCAB,
                       ['negative', 'positive'])


def classifier_trainer(method, corpus, out):
    """Trainer as `interpretable_adv.train` builds it, for the flags of the preset."""
    preset = presets.load('paper')
    settings = train.parse([*plans.classifier_arguments(preset, method, SEED), '--out', out])
    model = train.build_model(settings, corpus)
    if method != 'baseline':  # the language model's initial weights stand for its trained ones
        lm = pretrain.build_model(lm_settings(out), corpus.n_vocab)
        model.word_embed.W.array[...] = lm.embed.W.array
        model.uni_lstm.copyparams(lm.rnn)
    return train.build_trainer(settings, corpus, model, {}, distributed.ALONE)


def lm_settings(out):
    return pretrain.parse([*presets.arguments(presets.load('paper')['lm']), '--out', out])


def lm_trainer(corpus, out):
    settings = lm_settings(out)
    text = streams.from_corpus(corpus)
    model = pretrain.build_model(settings, corpus.n_vocab)
    trainer, _ = pretrain.build_trainer(settings, model, text, {}, distributed.ALONE)
    return trainer


def main(method, steps, mean_length):
    devices.seed(devices.choose(-1, None), SEED)
    losses = []

    def note(trainer):
        losses.append(float(trainer.observation['main/loss']))

    with tempfile.TemporaryDirectory() as out:
        # more reviews than are read, so that no epoch ends within the steps
        corpus = make_corpus(max(64 * (steps + 2), 20000 // mean_length), mean_length)
        trainer = (lm_trainer(corpus, out) if method == 'lm'
                   else classifier_trainer(method, corpus, out))
        trainer.extend(note, name='note', trigger=(1, 'iteration'))
        trainer.stop_trigger = lambda trainer: trainer.updater.iteration >= steps
        started = time.process_time()
        trainer.run(show_loop_exception_msg=False)
        seconds = time.process_time() - started
        left = sorted(path.name for path in pathlib.Path(out).iterdir())
    print(json.dumps({
        'losses': losses, 'seconds': seconds, 'epochs': trainer.updater.epoch, 'files': left,
        'n_parameters': int(trainer.updater.get_optimizer('main').target.count_params()),
        'peak_memory': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == '__main__':
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
