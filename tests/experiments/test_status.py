import json

from experiments import state, status
from experiments.plan import Job


def training(place, name, kind, log=None, result=None, snapshot=False):
    folder = place / name
    folder.mkdir()
    settings = {'epoch' if kind == 'lm' else 'n_epoch': 3}
    if log is not None:
        (folder / 'args.json').write_text(json.dumps(settings))
        (folder / 'log').write_text(json.dumps(log))
    if snapshot:
        (folder / 'snapshot.npz').write_bytes(b'')
    if result:
        (folder / 'result.json').write_text(json.dumps({**settings, **result}))
        (folder / 'best.model').write_bytes(b'')
    return Job(name, str(folder), (), outputs=('result.json', 'best.model'), settings=settings,
               trains=kind, epochs=3)


def entry(key, value, seconds):
    return {'epoch': 1, key: value, 'elapsed_time': seconds}


def lm(place):
    return training(place, 'lm_seed1', 'lm', result={'valid_perplexity': 90}, log=[
        entry('validation/perplexity', value, 3600 * hour)
        for hour, value in enumerate((120, 90, 95), 1)])


def test_a_page_names_the_state_of_every_job(tmp_path):
    plan = [lm(tmp_path),
            training(tmp_path, 'adv_seed1', 'classifier', snapshot=True, log=[
                entry('dev/main/accuracy', 91.5, 600), entry('dev/main/accuracy', 91.25, 1200)]),
            training(tmp_path, 'iadv_seed1', 'classifier'),
            Job('table1', str(tmp_path / 'table1'), (), outputs=('perplexity.json',))]
    status.write(plan, str(tmp_path / 'jobs'), str(tmp_path))
    assert (tmp_path / 'status.md').read_text().split('\n')[0] == '**1 of 4 jobs are finished**'
    assert (tmp_path / 'status.md').read_text().split('\n')[4:8] == [
        '| lm_seed1 | finished | 3 of at most 3 | perplexity 90.00 | 3 h 00 min |',
        '| adv_seed1 | in progress | 2 of at most 3 | accuracy 91.50 | 20 min |',
        '| iadv_seed1 | to do | 0 of at most 3 | – | – |',
        '| table1 | to do | – | – | – |']


def test_what_another_machine_has_finished_counts(tmp_path):
    """Models are not collected, and predictions are compressed."""
    here, there = tmp_path / 'runs', tmp_path / 'results'
    here.mkdir()
    there.mkdir()
    lm(there)
    (there / 'lm_seed1/best.model').unlink()
    (there / 'lm_seed1/predictions.csv.gz').write_bytes(b'')
    training(there, 'adv_seed1', 'classifier', result={'dev_accuracy': 91}, log=[
        entry('dev/main/accuracy', 91, 600)])
    (there / 'adv_seed1/args.json').write_text(json.dumps({'n_epoch': 3, 'unit': 7}))
    plan = [training(here, 'lm_seed1', 'lm', snapshot=True),
            training(here, 'adv_seed1', 'classifier'),
            Job('predictions_lm', str(here / 'lm_seed1'), (), outputs=('predictions.csv',)),
            Job('table1', str(here / 'table1'), (), outputs=('perplexity.json',))]
    status.write(plan, str(here / 'jobs'), str(there))
    lines = (there / 'status.md').read_text().split('\n')
    assert lines[0] == '**2 of 4 jobs are finished**'
    assert lines[4:8] == [
        '| lm_seed1 | finished elsewhere | 3 of at most 3 | perplexity 90.00 | 3 h 00 min |',
        '| adv_seed1 | to do | 0 of at most 3 | – | – |',
        '| predictions_lm | finished elsewhere | – | – | – |',
        '| table1 | to do | – | – | – |']


def test_a_finished_plan_has_no_page(tmp_path):
    plan = [lm(tmp_path)]
    (tmp_path / 'status.md').write_text('of an earlier day')
    status.write(plan, str(tmp_path / 'jobs'), str(tmp_path))
    assert not (tmp_path / 'status.md').exists()


def test_a_job_with_other_settings_is_called_so(tmp_path):
    job = lm(tmp_path)
    (tmp_path / 'lm_seed1/args.json').write_text(json.dumps({'epoch': 3, 'unit': 7}))
    table = status.table([job], {job.name: state.look(job, [job], str(tmp_path)).kind},
                         str(tmp_path))
    assert table.rows[0][1] == 'made with other settings'
