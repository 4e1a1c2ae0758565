"""PyTorch's and faiss's part of the benchmarks. Needs only them and NumPy, in an environment of
their own; reads commands from its input, one JSON object a line, and answers likewise."""
import json
import sys
import time

import faiss
import numpy as np
import torch
from torch.nn.utils import rnn

STATE = {}


def lstm_setup(file, lengths):
    """Takes over parameters (Chainer's names) and inputs from an npz file."""
    data = np.load(file)
    order = (0, 1, 2, 3)  # PyTorch's gates are i, f, g, o, as NStepLSTM's
    hidden, size = data['w0'].shape
    module = torch.nn.LSTM(size, hidden, batch_first=False)
    with torch.no_grad():
        module.weight_ih_l0.copy_(torch.tensor(np.concatenate([data[f'w{i}'] for i in order])))
        module.weight_hh_l0.copy_(torch.tensor(np.concatenate([data[f'w{i + 4}'] for i in order])))
        module.bias_ih_l0.copy_(torch.tensor(np.concatenate([data[f'b{i}'] for i in order])))
        module.bias_hh_l0.copy_(torch.tensor(np.concatenate([data[f'b{i + 4}'] for i in order])))
    x = torch.tensor(data['x'])
    STATE.update(module=module, sequences=list(torch.split(x, lengths)), lengths=lengths)


def _packed(sequences, lengths):
    batch = rnn.pack_sequence(sequences, enforce_sorted=False)
    return STATE['module'](batch)[1][0][0]


def _padded(sequences, lengths):
    outputs, _ = STATE['module'](rnn.pad_sequence(sequences))
    return outputs[torch.tensor(lengths) - 1, torch.arange(len(lengths))]


def _bucketed(sequences, lengths, size=8):
    """Padded, in groups of like length."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    result = [None] * len(lengths)
    for start in range(0, len(order), size):
        group = order[start:start + size]
        states = _padded([sequences[i] for i in group], [lengths[i] for i in group])
        for i, state in zip(group, states):
            result[i] = state
    return torch.stack(result)


def lstm_run(kind, result=None):
    """Seconds of one forward and backward pass; `result`: where states and gradients go."""
    run = {'packed': _packed, 'padded': _padded, 'bucketed': _bucketed}[kind]
    sequences = [s.detach().requires_grad_() for s in STATE['sequences']]
    STATE['module'].zero_grad()
    start = time.perf_counter()
    states = run(sequences, STATE['lengths'])
    states.sum().backward()
    seconds = time.perf_counter() - start
    if result:
        np.savez(result, states=states.detach().numpy(),
                 x=torch.cat([s.grad for s in sequences]).numpy(),
                 w=STATE['module'].weight_hh_l0.grad.numpy())
    return seconds


def language_model_setup(n_vocab, embedding, hidden, cutoffs, streams, time_steps):
    torch.manual_seed(0)
    model = torch.nn.ModuleDict({
        'embed': torch.nn.Embedding(n_vocab, embedding),
        'rnn': torch.nn.LSTM(embedding, hidden, batch_first=True),
        'output': torch.nn.AdaptiveLogSoftmaxWithLoss(hidden, n_vocab, cutoffs, div_value=4.0)})
    STATE.update(model=model, dropout=torch.nn.Dropout(0.5),
                 adam=torch.optim.Adam(model.parameters()), state=(
        torch.zeros(1, streams, hidden), torch.zeros(1, streams, hidden)))


def language_model_run(words, targets):
    """Seconds of one training step on a window."""
    model, dropout = STATE['model'], STATE['dropout']
    words, targets = torch.tensor(words), torch.tensor(targets)
    start = time.perf_counter()
    outputs, state = model['rnn'](dropout(model['embed'](words)), STATE['state'])
    STATE['state'] = tuple(s.detach() for s in state)
    outputs = dropout(outputs).reshape(-1, outputs.shape[2])
    loss = model['output'](outputs, targets.ravel()).loss * words.shape[1]
    STATE['adam'].zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    STATE['adam'].step()
    return time.perf_counter() - start


def neighbors_setup(file, k, n_queries):
    unit = np.load(file)['embeddings']
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    index = faiss.IndexFlatIP(unit.shape[1])
    index.add(unit)
    STATE.update(index=index, unit=unit, k=k, n_queries=n_queries)


def neighbors_run(result=None):
    """Seconds of the search for the first words' neighbours; rank 0 is the word itself."""
    start = time.perf_counter()
    _, ids = STATE['index'].search(STATE['unit'][:STATE['n_queries']], STATE['k'] + 1)
    seconds = time.perf_counter() - start
    if result:
        np.savez(result, ids=ids[:, 1:])
    return seconds


def versions():
    return {'torch': torch.__version__, 'faiss': faiss.__version__}


COMMANDS = {function.__name__: function for function in (
    lstm_setup, lstm_run, language_model_setup, language_model_run, neighbors_setup,
    neighbors_run, versions)}


def main():
    torch.set_num_threads(int(sys.argv[1]))
    faiss.omp_set_num_threads(int(sys.argv[1]))
    for line in sys.stdin:
        arguments = json.loads(line)
        print(json.dumps(COMMANDS[arguments.pop('command')](**arguments)), flush=True)


if __name__ == '__main__':
    main()
