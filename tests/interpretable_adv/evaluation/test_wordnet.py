"""evaluation/wordnet.py on a database of a few words in WordNet's format, made up here."""
import zipfile

import pytest

from interpretable_adv.errors import UserError
from interpretable_adv.evaluation import wordnet

LICENCE = '  1 This line stands for the licence.\n'
FILES = {
    # offset, file, kind, number of words (hexadecimal), words, number of pointers, pointers
    'data.adj': LICENCE
    + '00000001 00 a 01 warm 0 002 ! 00000002 a 0101 & 00000003 a 0000 | of some heat\n'
    + '00000002 00 a 02 cold 0 chill(a) 0 002 ! 00000001 a 0101 & 00000004 a 0000 | of no heat\n'
    + '00000003 00 s 02 Toasty 0 snug 0 001 & 00000001 a 0000 | warm\n'
    + '00000004 00 s 01 icy 0 001 & 00000002 a 0000 | cold\n'
    + '00000005 00 a 01 round 0 000 | like a ball\n',
    'data.verb': '00000001 29 v 02 adore 0 cherish 0 001 ! 00000002 v 0101 02 + 08 00 + 09 00 | x\n'
                 '00000002 29 v 01 detest 0 001 ! 00000001 v 0101 01 + 08 00 | y\n',
    'data.noun': '00000001 29 n 01 city 0 000 | a town\n'
                 '00000002 29 n 01 foot 0 000 | a part\n'
                 '00000003 29 n 02 foot 0 pes 0 000 | a unit\n',
    'data.adv': '',
    # word, part, number of synsets, number of symbols, symbols, two counts, offsets
    'index.adj': LICENCE
    + 'chill a 1 2 ! & 1 0 00000002\ncold a 1 2 ! & 1 0 00000002\nicy a 1 1 & 1 0 00000004\n'
    + 'round a 1 0 1 0 00000005\nsnug a 1 1 & 1 0 00000003\ntoasty a 1 1 & 1 0 00000003\n'
    + 'warm a 1 2 ! & 1 0 00000001\n',
    'index.verb': 'adore v 1 1 ! 1 0 00000001\ncherish v 1 0 1 0 00000001\n'
                  'detest v 1 1 ! 1 0 00000002\n',
    'index.noun': 'city n 1 0 1 0 00000001\nfoot n 2 0 2 0 00000002 00000003\n'
                  'pes n 1 0 1 0 00000003\n',
    'index.adv': '',
    'noun.exc': 'feet foot\n', 'verb.exc': '', 'adj.exc': '', 'adv.exc': '',
}


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / 'wordnet'
    path.mkdir()
    for name, content in FILES.items():
        (path / name).write_text(content)
    return path


RELATIONS = [
    ('warm', 'cold', 'antonym'), ('cold', 'warm', 'antonym'), ('Warmest', 'colder', 'antonym'),
    ('toasty', 'icy', 'antonym'), ('snug', 'cold', 'antonym'),  # of opposite clusters
    ('toasty', 'snug', 'synonym'), ('cold', 'chill', 'synonym'), ('toasty', 'warm', None),
    ('adored', 'detests', 'antonym'), ('cherish', 'detest', None),  # only the listed words
    ('adoring', 'cherished', 'synonym'), ('cities', 'city', 'synonym'), ('feet', 'foot', 'synonym'),
    ('foot', 'pes', 'synonym'),  # in the second of two meanings
    ('warm', 'round', None), ('warm', 'elsewhere', None), ('nothing', 'here', None)]


@pytest.mark.parametrize('word, other, expected', RELATIONS)
def test_relations(folder, word, other, expected):
    database = wordnet.WordNet(folder)
    assert database.relation(word, other) == expected
    assert database.relation(word, other) == expected  # from memory


def test_nltks_archive_is_read(folder, tmp_path, monkeypatch):
    archive = tmp_path / 'nltk' / 'corpora' / 'wordnet.zip'
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, 'w') as stream:
        for name, content in FILES.items():
            stream.writestr(f'wordnet/{name}', content)
    assert wordnet.WordNet(archive).relation('warm', 'cold') == 'antonym'
    monkeypatch.delenv('WNSEARCHDIR', raising=False)
    monkeypatch.setenv('NLTK_DATA', str(tmp_path / 'nltk'))
    monkeypatch.setattr(wordnet, 'DEBIAN', str(tmp_path / 'nowhere'))
    assert wordnet.find().folder == str(archive)


def test_the_database_is_found_where_the_environment_says(folder, monkeypatch):
    monkeypatch.setenv('WNSEARCHDIR', str(folder))
    assert wordnet.find().folder == str(folder)


@pytest.mark.parametrize('name, content', [
    ('data.adj', None), ('index.adj', None), ('adj.exc', None), ('data.adj', 'one\n'),
    ('data.adj', '00000001 00 a zz warm 0 000 | x\n'), ('data.adj', '00000001 00\n'),
    ('index.adj', 'warm a many 0 1 0 00000001\n'), ('index.adj', 'warm a 1 0 1 0 00000009\n')])
def test_what_is_no_database_is_refused(folder, name, content):
    (folder / name).unlink()
    if content:
        (folder / name).write_text(content)
    with pytest.raises(UserError, match='is not a WordNet database .* give a folder'):
        wordnet.WordNet(folder).relation('warm', 'round')


def test_a_real_database(monkeypatch):
    monkeypatch.delenv('WNSEARCHDIR', raising=False)
    database = wordnet.find()
    if database is None:
        pytest.skip('needs a WordNet database (apt-get install wordnet-base)')
    assert database.relation('good', 'bad') == 'antonym'
    assert database.relation('loved', 'hated') == 'antonym'
    assert database.relation('lovely', 'hideous') == 'antonym'
    assert database.relation('film', 'movie') == 'synonym'
    assert database.relation('film', 'bad') is None
