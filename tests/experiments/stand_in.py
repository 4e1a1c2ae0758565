"""Generates a stand-in for a clone of upstream, with differences planted on request."""
import pathlib
import shutil

FILES = pathlib.Path(__file__).parent / 'standin'

PLANTS = {  # name: [(file, what stands there, what to put in its place)]
    'flag default': [('train.py', "'nn_k': 10", "'nn_k': 15")],
    'flag type': [('train.py', "'clip': 5.0, ", ''),
                  ('train.py', "'use_bilstm': 0,", "'use_bilstm': 0, 'clip': 5,")],
    'flag added upstream': [('train.py', "'use_bilstm': 0,", "'use_bilstm': 0, 'use_char': 0,")],
    'checkpoint key': [('nets.py', 'hidden_layer', 'middle_layer')],
    'sign of the perturbation': [
        ('nets.py', 'xs + self.xi_var * self.normalized', 'xs - self.xi_var * self.normalized')],
    'missing epsilon': [
        ('nets.py', 'get_normalized_vector(chainer.Variable(review[None])).array[0]',
         'review / np.linalg.norm(review)')],
    'other neighbour offset': [
        ('nets.py', 'first = self.args.nn_k_offset', 'first = self.args.nn_k_offset + 1')],
    'other class': [('nets.py', 'class uniLSTM_iVAT', 'class Classifier')],
}


def generate(path, *plants):
    """Writes the stand-in to `path`; returns it as a string."""
    shutil.copytree(FILES, path)
    for plant in plants:
        for name, old, new in PLANTS[plant]:
            file = path / name
            text = file.read_text(encoding='utf-8')
            assert old in text, f'{name} has no {old!r} to plant in'
            file.write_text(text.replace(old, new), encoding='utf-8')
    return str(path)
