import json
import pathlib
import re

import pytest

from experiments import paper_tables, results, tables
from interpretable_adv import paper
from interpretable_adv.errors import UserError
from tests.experiments import finished_runs


def cells(table):
    """`{first cell: [the others as text]}`."""
    return {row[0]: [str(cell) for cell in row[1:]] for row in table.rows if row}


# The paper's numbers ------------------------------------------------------------------------

def test_the_papers_numbers_are_the_papers(shared):
    text = (shared / 'paper.tex').read_text(encoding='utf-8')
    for value in [*paper.PERPLEXITY.values(), *paper.ACCURACY.values(), paper.LM_PERPLEXITY]:
        assert f'{value:.2f}' in text
    for split in ('train', 'dev', 'test', 'unlabeled'):
        assert f'{paper.DATASET[split]["examples"]:,}' in text
    assert paper.GAP == {'adv': 4.60, 'iadv': 5.93, 'spgd': 1.09}


# Table 3 ------------------------------------------------------------------------------------

def test_table3(results_folder):
    table = paper_tables.table3(str(results_folder))
    rows = cells(table)
    assert rows['Pretrained w/ AdvT-Text'] == [
        '93.58', '94.00', '93.50 ± 0.71 (2)', '6.42', '6.00']
    assert rows['Pretrained w/ SPGD (1 iter, 75% sparsity)'][:3] == [
        '93.54', '93.50', '93.00 ± 0.71 (2)']
    assert list(rows)[:2] == ['Baseline', 'Pretrained']


def test_best_is_by_dev_and_not_by_test(results_folder):
    finished_runs.write_classifier(results_folder, 'adv', 3, test=99, dev=10)
    rows = cells(paper_tables.table3(str(results_folder)))
    assert rows['Pretrained w/ AdvT-Text'][1] == '94.00'
    assert rows['Pretrained w/ AdvT-Text'][2].endswith('(3)')


def test_a_method_without_runs_is_a_dash(results_folder):
    for seed in (1, 2):
        (results_folder / f'iadv_seed{seed}' / 'result.json').unlink()
    rows = cells(paper_tables.table3(str(results_folder)))
    assert rows['Pretrained w/ iAdvT-Text'] == ['93.58', '–', '–', '6.42', '–']


def test_at_the_papers_size_no_deviation_is_noted(results_folder):
    notes = ' '.join(paper_tables.table3(str(results_folder)).notes)
    assert 'Corpus' not in notes and 'Classifiers' not in notes and 'xi_var' not in notes
    assert 'Language model: test perplexity 101.50 (paper: 114.77).' in notes
    assert 'Seeds: 1, 2.' in notes


def test_every_deviation_is_noted(tmp_path):
    small = ['--hidden_dim', '256', '--n_epoch', '8']
    for method, flags in (('baseline', ['--n_epoch', '10']), ('iadv', ['--xi_var', '5'])):
        finished_runs.write_classifier(tmp_path, method, 1, 90, flags=[*small, *flags])
    finished_runs.write_lm(tmp_path, flags=['--unit', '256', '--epoch', '4'])
    finished_runs.write_table2(tmp_path, (2000, 400, 1000, 3000))
    notes = paper_tables.table3(str(tmp_path)).notes
    text = '\n'.join(notes)
    assert 'Classifiers, in parentheses preset paper: hidden_dim 256 (1024).' in notes
    assert 'Baseline: n_epoch 10 (30).' in notes
    assert 'Pretrained w/ iAdvT-Text: n_epoch 8 (30), xi_var 5 (15).' in notes
    assert 'unit 256 (1024)' in text and 'epoch 4 (50)' in text
    assert '2,000 (21,246) train' in text


def test_gaps_have_intervals_where_they_were_measured(results_folder):
    path = results_folder / 'perplexity_seed1' / 'perplexity.json'
    content = json.loads(path.read_text())
    assert '95 % (reviews)' not in paper_tables.table1(str(results_folder)).columns
    for other in results_folder.glob('perplexity_seed*/perplexity.json'):
        for row in content['rows']:
            row['scores']['continuous']['gap_interval'] = [-0.5, 1.25]
        content['rows'][1]['scores']['continuous']['gap_interval'] = None
        other.write_text(json.dumps(content))
    table = paper_tables.table1(str(results_folder))
    column = table.columns.index('95 % (reviews)')
    assert table.columns[column - 1] == 'gap (best)'
    shown = {str(row[0]): str(row[column]) for row in table.rows if row}
    assert shown['SPGD'] == '[−0.50, +1.25]' and shown['AdvT-Text'] == '–'
    assert any(note.startswith('95 % (reviews)') for note in table.notes)


def test_seeds_that_differ_between_methods_are_told(results_folder):
    finished_runs.write_classifier(results_folder, 'spgd', 9, 93)
    notes = paper_tables.table3(str(results_folder)).notes
    assert any('1, 2 (baseline, pretrained, adv, iadv); 1, 2, 9 (spgd)' in note for note in notes)


def test_runs_that_do_not_belong_together_are_refused(results_folder):
    finished_runs.write_classifier(results_folder, 'adv', 3, 93, flags=['--xi_var', '2'])
    with pytest.raises(UserError, match='adv_seed3 cannot be combined in one table .xi_var was 5'):
        paper_tables.table3(str(results_folder))


def test_no_runs_is_one_line(tmp_path):
    for make in (paper_tables.table1, paper_tables.table2, paper_tables.table3):
        with pytest.raises(paper_tables.NoResultsError):
            make(str(tmp_path))
    assert paper_tables.equal_strength(str(tmp_path)) is None


# Significance -------------------------------------------------------------------------------

def test_significance_of_known_predictions(tmp_path):
    """In 400 reviews, SPGD gets 20 right that `pretrained` does not, and 4 the other way."""
    for method, accuracy in (('pretrained', 95), ('spgd', 99)):
        finished_runs.write_classifier(tmp_path, method, 1, accuracy, predicted=100)
    _spoil(tmp_path / 'pretrained_seed1', range(20))
    _spoil(tmp_path / 'spgd_seed1', range(100, 104))
    table = paper_tables.significance_table(str(tmp_path))
    (row,) = [row for row in table.rows if row]
    texts = [str(cell) for cell in row]
    assert texts[0] == 'spgd − pretrained' and texts[1] == '+4.00 (1)'
    assert texts[3:5] == ['20', '4'] and texts[5] == '0.0015'
    low, high = map(float, re.findall(r'[-+][\d.]+', texts[2].replace('−', '-')))
    assert 1.0 < low < 4.0 < high < 7.0


def test_predictions_of_another_model_are_refused(tmp_path):
    run = finished_runs.write_classifier(tmp_path, 'spgd', 1, 93)
    finished_runs.write_classifier(tmp_path, 'adv', 1, 92)
    assert paper_tables.significance_table(str(tmp_path)) is not None
    _spoil(run, [0])
    with pytest.raises(UserError, match='spgd_seed1: predictions.csv is not of the model'):
        paper_tables.significance_table(str(tmp_path))


def _spoil(run, indices):
    path = run / 'predictions.csv'
    lines = path.read_text(encoding='utf-8').splitlines()
    for index in indices:
        number, label, prediction, *rest = lines[index + 1].split(',')
        lines[index + 1] = ','.join([number, label, str(1 - int(prediction)), *rest])
    path.write_text('\n'.join(lines) + '\n', encoding='utf-8')


def test_significance_pairs_seeds(results_folder):
    (results_folder / 'baseline_seed2' / 'result.json').unlink()
    rows = cells(paper_tables.significance_table(str(results_folder)))
    assert rows['pretrained − baseline'][0] == '+3.00 (1)'
    assert rows['spgd − adv'][0] == '−0.50 ± 0.00 (2)'
    assert set(rows) == {'pretrained − baseline', 'adv − pretrained', 'iadv − pretrained',
                         'spgd − pretrained', 'spgd − adv', 'spgd − iadv', 'iadv − adv'}


@pytest.mark.parametrize('content', [
    b'', b'{"label": 1}', b'label\n1\n', b'label,prediction\n1\n', b'label,prediction\n1,x\n',
    b'label,prediction\n1,-1\n', b'label,prediction\n1,99999999999\n', b'\xff\xfe\0\0'])
def test_damaged_predictions_are_told(results_folder, content):
    (results_folder / 'spgd_seed1' / 'predictions.csv').write_bytes(content)
    with pytest.raises(UserError, match='spgd_seed1/predictions.csv is damaged'):
        paper_tables.significance_table(str(results_folder))


def test_missing_predictions_are_told(results_folder):
    (results_folder / 'spgd_seed1' / 'predictions.csv').unlink()
    with pytest.raises(UserError, match='spgd_seed1 has no predictions.csv'):
        paper_tables.significance_table(str(results_folder))


# Table 1 ------------------------------------------------------------------------------------

def test_table1(results_folder):
    table = paper_tables.table1(str(results_folder))
    rows = cells(table)
    # Table 3 shows seed 1 of iAdvT and seed 2 of SPGD, by dev accuracy.
    assert rows['iAdvT-Text'] == ['15', '123.86', '+5.93', '106.00', '+6.00', '+6.25 ± 0.35 (2)',
                                  '+12.00', '+1,800.00', '20.0', '0.100', '25.0']
    assert rows['SPGD'][3:5] == ['101.50', '+1.50']
    assert rows['None (ground-truth corpus)'][:5] == ['', '117.93', '+0.00', '100.00', '+0.00']
    assert rows['Control: AdvT-Text, sparsified'][1:3] == ['–', '–']
    assert len([row for row in table.rows if row is None]) == 2


@pytest.mark.parametrize('method, flags, setting', [
    ('iadv', ['--xi_var', '2.5'], 'ε 2.5 (15)'),
    ('iadv', ['--nn_k', '10'], 'K 10 (15)'),
    ('adv', ['--mask_eos', '1'], 'mask_eos 1 (0)'),
    ('adv', ['--norm_sentence_level', '0'], 'norm_sentence_level 0 (1)'),
    ('spgd', ['--sparsity', '0.5', '--spgd_toward_only', '1'],
     'σ 0.5 (0.75), spgd_toward_only 1 (0)'),
    ('spgd', ['--sparsity_rank', 'projected'], 'sparsity_rank projected (raw)')])
def test_other_settings_in_training_are_noted(results_folder, method, flags, setting):
    assert 'was trained with' not in ' '.join(paper_tables.table1(str(results_folder)).notes)
    for seed in (1, 2):
        finished_runs.write_classifier(results_folder, method, seed, 94, flags=flags)
    title = paper_tables.attack_title(method)
    notes = [note for note in paper_tables.table1(str(results_folder)).notes
             if 'was trained with' in note]
    assert len(notes) == 1
    assert sorted(notes[0].partition(';')[0].partition(' was trained with ')[2].split(', ')) == (
        sorted(setting.split(', ')))
    assert notes[0].startswith(title)


def test_settings_that_an_attack_does_not_use_are_not_noted(results_folder):
    for seed in (1, 2):
        finished_runs.write_classifier(results_folder, 'adv', seed, 94,
                                       flags=['--nn_k', '3'])
    assert 'was trained with' not in ' '.join(paper_tables.table1(str(results_folder)).notes)


def test_results_without_settings_per_attack_are_marked(results_folder):
    for path in results_folder.glob('perplexity*/perplexity.json'):
        content = json.loads(path.read_text(encoding='utf-8'))
        for row in content['rows']:
            del row['settings']
        path.write_text(json.dumps({**content, 'nn_k': 12, 'sparsity': 0.75}), encoding='utf-8')
    notes = '\n'.join(paper_tables.table1(str(results_folder)).notes)
    assert 'Measured before every attack took its settings from its classifier: K = 12' in notes
    assert 'iAdvT-Text was trained with K 15 (12);' in notes
    assert 'AdvT-Text was trained with K' not in notes.replace('iAdvT-Text was trained', '')


def test_equal_strength(results_folder):
    table = paper_tables.equal_strength(str(results_folder))
    assert table.columns[1:] == ['10 % flipped', '25 % flipped', '50 % flipped']
    rows = cells(table)
    assert rows['SPGD, own classifiers'] == rows['SPGD, one classifier'] == [
        '+0.50 (1)', '+1.50 (1)', '–']
    assert len(rows) == 10


def test_a_run_without_its_epsilon_is_damaged(results_folder):
    for seed in (1, 2):
        path = results_folder / f'spgd_seed{seed}' / 'args.json'
        content = json.loads(path.read_text(encoding='utf-8'))
        del content['xi_var']
        path.write_text(json.dumps(content), encoding='utf-8')
    with pytest.raises(UserError, match='spgd_seed1/args.json is damaged: xi_var is'):
        paper_tables.equal_strength(str(results_folder))


def test_equal_strength_over_seeds(results_folder):
    """Attacks that flip so many on some seeds only are averaged over those."""
    finished_runs.write_perplexity(results_folder, 'perplexity_sweep', 2, sweep=True)
    path = results_folder / 'perplexity_sweep_seed2' / 'perplexity.json'
    content = json.loads(path.read_text(encoding='utf-8'))
    content['gap_at_flip_rate']['continuous']['spgd'] |= {'10': 0.7, '25': None, '50': 9.0}
    path.write_text(json.dumps(content), encoding='utf-8')
    table = paper_tables.equal_strength(str(results_folder))
    rows = cells(table)
    assert rows['SPGD, own classifiers'] == ['+0.60 ± 0.14 (2)', '+1.50 (1)', '+9.00 (1)']
    assert rows['SPGD, one classifier'] == ['+0.50 (1)', '+1.50 (1)', '–']
    assert len(rows) == 10
    heading, *lines = tables.comma_separated(table).splitlines()
    assert heading.split(',')[:5] == ['Attack', '10 % flipped', '10 % flipped: sd',
                                      '10 % flipped: n', '25 % flipped']
    assert '"SPGD, own classifiers",0.6,0.141421,2,1.5,,1,9,,1' in lines


# Table 2 ------------------------------------------------------------------------------------

def test_table2_says_whether_it_is_the_papers(tmp_path):
    finished_runs.write_table2(tmp_path)
    table = paper_tables.table2(str(tmp_path))
    assert table.notes == ["Every number is the paper's."]
    assert cells(table)['Avg. sequence length, ours'] == ['242.44', '239.86', '235.59', 'N/A']
    finished_runs.write_table2(tmp_path, (21246, 3754, 24999, 50000))
    assert paper_tables.table2(str(tmp_path)).notes == ["Some numbers differ from the paper's."]
    finished_runs.write_table2(tmp_path, (2000, 400, 1000, 3000))
    assert paper_tables.table2(str(tmp_path)).notes == ["Not the paper's corpus."]


def test_all_tables_have_all_forms(results_folder, tmp_path):
    for make in (paper_tables.table1, paper_tables.table2, paper_tables.table3,
                 paper_tables.significance_table, paper_tables.equal_strength):
        path = tables.write(make(str(results_folder)), str(tmp_path / 'tables'))
        for ending in tables.FORMS:
            assert pathlib.Path(f'{path}.{ending}').stat().st_size > 100
        assert pathlib.Path(f'{path}.tex').read_text(encoding='utf-8').isascii()


def test_results_of_other_folders_are_left_alone(results_folder):
    (results_folder / 'grid_search').mkdir()
    finished_runs.write_classifier(results_folder / 'grid_search', 'adv', 7, 99)
    (results_folder / 'notes_seed1').mkdir()
    found = results.find(str(results_folder))
    assert {method: [run.seed for run in runs] for method, runs in found.items()} == dict.fromkeys(
        ('baseline', 'pretrained', 'adv', 'iadv', 'spgd'), [1, 2])
