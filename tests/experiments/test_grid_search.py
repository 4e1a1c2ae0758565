import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import grid_search, presets, tables
from experiments import plan as plans
from interpretable_adv.errors import UserError


@given(st.data())
def test_climbing_finds_the_top_of_a_convex_curve(data):
    """Of strictly unimodal scores the best is found from everywhere, trying neighbours only."""
    rising = sorted(data.draw(st.sets(st.integers(0, 1000), min_size=1, max_size=8)))
    falling = sorted(data.draw(st.sets(st.integers(0, 1000), max_size=8)), reverse=True)
    scores = rising + [score for score in falling if score < rising[-1]]
    values = list(range(len(scores)))
    start = data.draw(st.sampled_from(values))
    best, tried = grid_search.climb(values, start, lambda some: [scores[value] for value in some])
    assert best == scores.index(max(scores))
    assert tried == {value: scores[value] for value in tried}
    # a stretch without holes, from beside the start to at most one beyond the top
    assert sorted(tried) == list(range(min(tried), max(tried) + 1))
    assert min(tried) >= min(start, best) - 1 and max(tried) <= max(start, best) + 1


@pytest.mark.parametrize('scores, start, best', [
    ([5, 5, 5], 1, 1), ([5, 5, 5], 0, 0), ([7], 0, 0), ([1, 2, 2, 3], 0, 1), ([3, 1, 2], 1, 0)])
def test_ties_stay_and_valleys_are_left_to_the_better_side(scores, start, best):
    values = list(range(len(scores)))
    assert grid_search.climb(values, start, lambda some: [scores[v] for v in some])[0] == best


def make_search(tmp_path, dev, overrides=(), seeds=(1, 2)):
    """A search whose trainings are replaced by a formula for dev accuracy."""
    preset = presets.load('toy', ['grid_search.spgd_lm.class_lm_weight=',
                                  'grid_search.adv.xi_var=0.25 0.5 1 2',
                                  'spgd.xi_var=2.5', 'grid_search.spgd.xi_var=1 2.5 5',
                                  'grid_search.spgd.sparsity=0.5 0.75 0.9',
                                  'grid_search.n_epoch=6', *overrides])
    trained = []

    def run(jobs):
        for job in jobs:
            trained.append(job)
            folder = tmp_path / job.folder
            folder.mkdir(parents=True, exist_ok=True)
            (folder / 'result.json').write_text(json.dumps({
                'dev_accuracy': dev(job.settings), 'test_accuracy': -dev(job.settings)}))

    search = grid_search.Search(preset, plans.Places(str(tmp_path / 'runs'), 'data'), list(seeds),
                                run)
    return search, trained


def formula(settings):
    if settings['method'] == 'adv':
        return 90 - abs(settings['xi_var'] - 2) + 0.01 * settings['random_seed']
    return (90 - abs(settings['xi_var'] - 5)
            - (4 - settings['xi_var']) * (settings['sparsity'] - 0.6))


def test_search_takes_one_parameter_after_the_other(tmp_path):
    search, trained = make_search(tmp_path, formula)
    # SPGD's σ is sought at the ε found before, where the formula's slope has turned.
    assert search.search() == {'adv': {'xi_var': 2.0}, 'spgd': {'xi_var': 5.0, 'sparsity': 0.9}}
    assert {job.settings['n_epoch'] for job in trained} == {6}  # of [grid_search]
    names = {job.name for job in trained}
    assert 'grid_search_spgd_xi_var-5_sparsity-0.9_seed2' in names
    assert len(names) == len({job.folder for job in trained})
    assert len(search.points[0]['dev_accuracy']) == 2


def test_the_test_set_has_no_part_in_it(tmp_path):
    """`make_search` gives the best on dev the worst result on test."""
    search, _ = make_search(tmp_path, formula)
    assert search.search()['adv'] == {'xi_var': 2.0}


def test_results_of_a_search(tmp_path):
    assert grid_search.table(str(tmp_path / 'runs')) is None
    search, _ = make_search(tmp_path, formula)
    search.search()
    pictures = grid_search.write_results(search, str(tmp_path / 'runs' / 'grid_search'))
    assert [path.rpartition('/')[2] for path in pictures] == [
        'adv_xi_var.png', 'spgd_xi_var.png', 'spgd_sparsity.png']
    text = tables.terminal(grid_search.table(str(tmp_path / 'runs')))
    assert text.count('kept') == 3
    assert 'xi_var 5' in text
    written = json.loads((tmp_path / 'runs/grid_search/grid_search.json').read_text())
    assert written['chosen'] == search.chosen and written['seeds'] == [1, 2]
    chosen = grid_search.as_preset(search.chosen)
    assert chosen == '[adv]\nxi_var = 2\n[spgd]\nxi_var = 5\nsparsity = 0.9'


def test_the_table_says_what_was_kept_at_the_end_of_a_list(tmp_path):
    search, _ = make_search(tmp_path, formula, ['grid_search.adv.xi_var=0.5 1 2 5'])
    search.search()
    grid_search.write_results(search, str(tmp_path / 'runs' / 'grid_search'))
    table = grid_search.table(str(tmp_path / 'runs'))
    assert [row and row[1] for row in table.rows] == [  # ascending, whatever was tried first
        '0.5', '1', '2', '5', None, '1', '2.5', '5', None, '0.5', '0.75', '0.9']
    assert table.notes[1:] == [
        'Kept at the end of its list, beyond which this search did not look: spgd xi_var 5, '
        'spgd sparsity 0.9.']


@pytest.mark.parametrize('override, message', [
    ('grid_search.nobody.xi_var=1 2', 'no method'), ('grid_search.adv.xi_var=one two', 'numbers'),
    ('grid_search.adv.method=1 2', 'no such number'), ('grid_search.adv.colour=1', 'no such')])
def test_wrong_entries_are_told(tmp_path, override, message):
    with pytest.raises(UserError, match=message):
        make_search(tmp_path, formula, [override])[0].search()


def test_nothing_to_search_is_told(tmp_path):
    with pytest.raises(UserError, match='nothing to search'):
        make_search(tmp_path, formula, ['plan.methods=baseline'])
