"""iterators.py: upstream's order from the global stream."""
import numpy as np
import pytest
from chainer.serializers import DictionarySerializer, NpzDeserializer

from interpretable_adv.data.iterators import ReviewIterator


def test_the_order_is_upstreams():
    np.random.seed(3)
    labeled, first, second = (np.random.permutation(n) for n in (7, 5, 5))
    np.random.seed(3)
    iterator = ReviewIterator(7, 3, 5, 4)
    batches = [iterator.next() for _ in range(3)]
    np.testing.assert_array_equal(np.concatenate([batch for batch, _ in batches]), labeled)
    assert [len(batch) for batch, _ in batches] == [3, 3, 1]
    np.testing.assert_array_equal(
        np.concatenate([batch for _, batch in batches]), np.concatenate([first, second]))
    assert [len(batch) for _, batch in batches] == [4, 4, 2]


def test_nothing_is_drawn_before_the_first_step_and_once_an_epoch():
    np.random.seed(3)
    iterator = ReviewIterator(7, 3)
    assert np.random.get_state()[2] == np.random.RandomState(3).get_state()[2]
    epochs = [np.concatenate([iterator.next()[0] for _ in range(3)]) for _ in range(2)]
    assert all(sorted(epoch) == list(range(7)) for epoch in epochs)
    assert list(epochs[0]) != list(epochs[1])


def test_epochs_are_counted():
    iterator = ReviewIterator(7, 3)
    seen = []
    for _ in range(6):
        iterator.next()
        seen.append((iterator.epoch, iterator.is_new_epoch, iterator.epoch_detail))
    assert seen == [(0, False, 1 / 3), (0, False, 2 / 3), (1, True, 1),
                    (1, False, 1 + 1 / 3), (1, False, 1 + 2 / 3), (2, True, 2)]


def test_unlabelled_reviews_begin_again_where_they_run_out():
    iterator = ReviewIterator(12, 3, 2, 3)
    assert [len(iterator.next()[1]) for _ in range(4)] == [3, 1, 3, 3]


@pytest.mark.parametrize('steps', [1, 3, 4])
def test_a_restored_iterator_goes_on(steps):
    np.random.seed(3)
    iterator = ReviewIterator(7, 3, 5, 4)
    for _ in range(steps):
        iterator.next()
    serializer = DictionarySerializer()
    iterator.serialize(serializer)
    state = np.random.get_state()
    expected = [iterator.next() for _ in range(5)]
    other = ReviewIterator(7, 3, 5, 4)
    other.serialize(NpzDeserializer(serializer.target))
    np.random.set_state(state)
    for (a, b), (c, d) in zip(expected, [other.next() for _ in range(5)]):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)
