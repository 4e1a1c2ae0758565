import importlib.util

import numpy as np
import pytest


@pytest.fixture(scope='module')
def figure1(root):
    return load(root, 'figure1')


def load(root, name):
    spec = importlib.util.spec_from_file_location(name, root / 'figures' / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gradient_is_that_of_the_loss(figure1):
    generator = np.random.RandomState(0)
    for _ in range(5):
        words = figure1.WORDS + generator.normal(size=(2, 2))
        numerical = np.zeros((2, 2))
        for index in np.ndindex(2, 2):
            step = np.zeros((2, 2))
            step[index] = 1e-5
            numerical[index] = (figure1.loss(words + step) - figure1.loss(words - step)) / 2e-5
        np.testing.assert_allclose(figure1.loss_gradient(words), numerical, atol=1e-5)


def test_picture_shows_algorithm_1(figure1):
    """Steps, selection and projection once more, written out in plain NumPy."""
    found = figure1.compute()
    words = figure1.WORDS.astype('d')
    raw = np.zeros((2, 2))
    for step in range(3):
        gradient = figure1.loss_gradient(words + raw)
        raw = raw + 0.85 * gradient / np.linalg.norm(gradient)
        np.testing.assert_allclose(found.path[step + 1], words + raw, atol=1e-4)
    np.testing.assert_allclose(found.raw, raw, atol=1e-4)
    norms = np.linalg.norm(raw, axis=1)
    assert norms[0] > norms[1] and found.kept.tolist() == [True, False]  # "here, Word A"
    directions = figure1.NEIGHBORS[0] - words[0]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    products = directions @ raw[0]
    best = products.argmax()
    np.testing.assert_allclose(found.perturbation[0], products[best] * directions[best], atol=1e-4)
    assert not found.perturbation[1].any()
    # The dotted line is at a right angle to the red arrow.
    assert (raw[0] - found.perturbation[0]) @ found.perturbation[0] == pytest.approx(0, abs=1e-3)


def test_loss_rises_with_every_step_and_with_the_projection(figure1):
    found = figure1.compute()
    losses = [figure1.loss(words) for words in found.path]
    assert losses == sorted(losses)
    assert figure1.loss(figure1.WORDS + found.perturbation) > losses[0]


def test_arrows_end_where_the_numbers_say(figure1):
    axes = figure1.make_figure().axes[0]
    found = figure1.compute()
    arrows = {tuple(np.round(text.xy, 4)) for text in axes.texts if text.arrow_patch is not None}
    ends = [*found.path[1:].reshape(-1, 2), *(figure1.WORDS + found.raw),
            figure1.WORDS[0] + found.perturbation[0]]
    for end in ends:
        assert any(np.allclose(end, arrow, atol=1e-3) for arrow in arrows)
    assert len([text for text in axes.texts if text.arrow_patch is not None]) == 6 + 2 + 1


def test_labels_do_not_overlap_each_other_or_leave_the_page(figure1):
    figure = figure1.make_figure()
    figure.canvas.draw()
    legend, = figure.legends
    texts = [text for text in [*figure.axes[0].texts, *legend.get_texts()] if text.get_text()]
    boxes = [text.get_window_extent() for text in texts]
    assert len(boxes) == 2 + 6 + 1 + 4
    for number, box in enumerate(boxes):
        assert box.x0 >= 0 and box.y0 >= 0, texts[number].get_text()
        assert box.x1 <= figure.bbox.width and box.y1 <= figure.bbox.height
        for other in boxes[number + 1:]:
            assert not (min(box.x1, other.x1) > max(box.x0, other.x0)
                        and min(box.y1, other.y1) > max(box.y0, other.y0)), texts[number].get_text()


def test_same_bytes_each_time(figure1, tmp_path):
    for name in 'ab':
        figure1.main(['--out', str(tmp_path / name)])
    for kind in ('png', 'pdf'):
        first, second = ((tmp_path / name / f'figure1.{kind}').read_bytes() for name in 'ab')
        assert first == second and len(first) > 5000
