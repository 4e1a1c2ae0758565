"""Makes a run the embedded model: python -m experiments.demo_model RUN --data_dir D

Rounds the run's best model to float16 and writes it with its words, settings and a model card to
interpretable_adv/demo. The accuracies in the card are those of the rounded model, read back from
there.
"""
import json
import os
import shutil

import h5py
import numpy as np

from interpretable_adv import api, cli, methods, nets, settings
from interpretable_adv.errors import UserError
from interpretable_adv.runs import checkpoints, folder
from interpretable_adv.runs.files import atomic_write, make_directory, write_json

LIMIT = 6_000_000  # bytes
CARD = 'README.md'
# Settings of the run that the model's users may want; the others say where things were.
KEPT = ('method', 'preset', 'random_seed', 'n_epoch', 'lower', 'min_count', 'ignore_unk',
        'use_unlabled_to_vocab', 'emb_dim', 'hidden_dim', 'hidden_cls_dim', 'n_layers', 'dropout',
        'batchsize', 'alpha', 'alpha_decay', 'clip',
        *(flag for name, flag in settings.ATTACK.items() if name not in methods.OF_GUIDES),
        'update_nearest_batch', 'label_names', 'tokenizer', 'train_vocab_size', 'vocab_sha256')


def pack(run, target):
    """Writes the model of a run's folder, rounded, and what `api.load` needs beside it."""
    model = os.path.join(run, folder.MODEL)
    arrays = checkpoints.read_arrays(model)
    stored = settings.read_run(model)
    missing = [name for name in KEPT if name not in stored]
    if missing:
        raise UserError(f'{model}: its {folder.SETTINGS} lacks {", ".join(missing)}; train it '
                        'with this version')
    make_directory(target)
    with atomic_write(os.path.join(target, folder.MODEL), 'w+b') as stream, \
            h5py.File(stream, 'w') as file:
        for name in sorted(arrays):
            rounded = arrays[name].astype(np.float16)
            if not np.isfinite(rounded).all():
                raise UserError(f'{model}: {name} is too large for float16')
            file.create_dataset(name, data=rounded, compression='gzip', compression_opts=9,
                                shuffle=True, track_times=False)
    shutil.copyfile(os.path.join(run, folder.VOCABULARY),
                    os.path.join(target, folder.VOCABULARY))
    write_json(os.path.join(target, folder.SETTINGS), {name: stored[name] for name in KEPT})


def measure(target, corpus):
    """Accuracies of the packed model in per cent, and what identifies it."""
    path = os.path.join(target, folder.MODEL)
    model = nets.load_classifier(path, corpus.words)
    found = {}
    for name in ('dev', 'test'):
        split = getattr(corpus, name)
        right = nets.predict(model, split.sequences).argmax(axis=1) == split.labels
        found[f'{name}_accuracy'] = 100 * float(right.mean())
    return {**found, 'test_reviews': len(corpus.test.labels), **folder.identity_of_model(path),
            'versions': folder.versions()}


def card(target):
    """The model card, from the files beside it."""
    with open(os.path.join(target, folder.RESULT), encoding='utf-8') as stream:
        result = json.load(stream)
    run = settings.read_run(os.path.join(target, folder.MODEL))
    words = len(api.data.read_vocabulary(os.path.join(target, folder.VOCABULARY)))
    error = 100 * (0.5 ** 2 / result['test_reviews']) ** 0.5
    rows = '\n'.join(f'| {name} | {value} |' for name, value in {
        'Test accuracy': (
            f'**{result["test_accuracy"]:.2f} %** of {result["test_reviews"]:,} reviews (standard '
            f'error at most {error:.2f}); dev {result["dev_accuracy"]:.2f} %'),
        'Training': (f'SPGD (ε {run["xi_var"]:g}, K {run["nn_k"]}, σ {run["sparsity"]:g}) from a '
                     'language model of one epoch, on all of IMDB'),
        'Network': (f'{words:,} words, vectors of {run["emb_dim"]}, LSTM of {run["hidden_dim"]}, '
                    f'hidden layer of {run["hidden_cls_dim"]}'),
        'Words': (f'lower-cased, in more than {run["min_count"]} training or unlabelled reviews; '
                  'others are left out'),
        'File': '`best.model`, HDF5 in float16; widened to float32 when loaded',
    }.items())
    return f'''# The embedded classifier

`interpretable_adv.load('demo')`: is an English film review positive or negative?

| | |
|---|---|
{rows}

Both accuracies are those of this file, rounding included:

```bash
python -m interpretable_adv.evaluate --model demo --data_dir data/imdb      # --split dev
```

The epoch with the best dev accuracy was kept, of {run["n_epoch"]}; test reviews decided nothing.
`bash experiments/demo_model.sh` trains it again and ends with `python -m experiments.demo_model`,
which writes this folder.

**Data.** The Large Movie Review Dataset (Maas et al., 2011): 21,246 labelled reviews for training,
3,754 as dev set, 50,000 unlabelled ones for the language model. The folder holds no review, only
single words and weights.

**Limits.** A small model for demonstrations and tests, not for decisions. It knows film reviews in
English, written before 2011 by users of one site, and reads anything else as if it were one. It
sees no punctuation, no capitals and no rare words: `unknown` lists what it did not see. The larger
models in `docs/results.md` are better.
'''


def main(argv=None):
    parser = cli.ArgumentParser(prog='python -m experiments.demo_model', description=__doc__)
    parser.add_argument('run', help="a training run's folder")
    parser.add_argument('--out', default=folder.DEMO, help='folder to write to')
    settings.add_data(parser)
    flags = parser.parse_args(argv)
    model = os.path.join(flags.run, folder.MODEL)
    settings.set_run_defaults(parser, settings.read_run(model), settings.DATA, model)
    flags = parser.parse_args(argv)
    corpus = settings.load_corpus(flags)
    pack(flags.run, flags.out)
    result = measure(flags.out, corpus)
    write_json(os.path.join(flags.out, folder.RESULT), result)
    with atomic_write(os.path.join(flags.out, CARD)) as stream:
        stream.write(card(flags.out))
    size = sum(entry.stat().st_size for entry in os.scandir(flags.out))
    print(f'{flags.out}: {size:,} bytes, dev {result["dev_accuracy"]:.2f} %, test '
          f'{result["test_accuracy"]:.2f} %')
    if size > LIMIT:
        raise UserError(f'{flags.out} is larger than {LIMIT:,} bytes: choose fewer words')


if __name__ == '__main__':
    cli.run(main)
