import numpy as np
import pytest

from interpretable_adv import data
from interpretable_adv.cli import UserError
from lm import texts


def test_the_corpus_as_it_is(synthetic):
    corpus = data.load(str(synthetic))
    text = texts.from_corpus(corpus)
    np.testing.assert_array_equal(text.train.flat, corpus.lm_train())
    np.testing.assert_array_equal(text.dev.flat, corpus.lm_dev())
    np.testing.assert_array_equal(text.test.flat, corpus.lm_test())


@pytest.mark.parametrize('ignore_unk', [True, False])
def test_its_own_vocabulary_changes_nothing(synthetic, ignore_unk):
    usual = texts.from_corpus(data.load(str(synthetic), ignore_unk=ignore_unk))
    everything = data.load(str(synthetic), min_count=0, ignore_unk=False)
    again = texts.with_vocabulary(everything, usual.words, ignore_unk)
    assert again.words == usual.words
    for split in ('train', 'dev', 'test'):
        np.testing.assert_array_equal(getattr(again, split).flat, getattr(usual, split).flat)


def test_the_first_reviews(synthetic):
    text = texts.from_corpus(data.load(str(synthetic)))
    few = text.first(3)
    for split in ('train', 'dev', 'test'):
        reviews = getattr(few, split)
        assert len(reviews) == 3
        for short, whole in zip(reviews, getattr(text, split)):
            np.testing.assert_array_equal(short, whole)
    assert len(text.first(10 ** 6).train) == len(text.train)


def test_reads_a_vocabulary(tmp_path):
    path = tmp_path / 'vocab.txt'
    path.write_text('<eos>\n<unk>\nfilm\nÄrger\n', encoding='utf-8')
    assert texts.read_vocabulary(str(path)) == ['<eos>', '<unk>', 'film', 'Ärger']


@pytest.mark.parametrize('content', [
    b'', b'film\nwas\n', b'<eos>\n<unk>\n', b'<eos>\n<unk>\nfilm\nfilm\n',
    b'<eos>\n<unk>\n\nfilm\n', b'\xff\xfe\x00'])
def test_refuses_a_wrong_vocabulary_in_one_line(tmp_path, content):
    path = tmp_path / 'vocab.txt'
    path.write_bytes(content)
    with pytest.raises(UserError, match='vocab.txt'):
        texts.read_vocabulary(str(path))


def test_refuses_a_missing_vocabulary(tmp_path):
    with pytest.raises(UserError, match='No such file'):
        texts.read_vocabulary(str(tmp_path / 'nowhere.txt'))
