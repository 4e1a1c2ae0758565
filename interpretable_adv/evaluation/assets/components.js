'use strict';
// What the report and the live page share: panels of words, one for each method, and the word card.
// A review is a list of records as evaluation/records.py describes them, one for each method. Each
// has more fields: its method's `title`, the `hue` of its colours, a `note` or null, and, on the live
// page, `readings`: the classes that the classifier predicts for the text in each reading.
const components = (() => {
  const END = '<eos>';
  const LONG = 40;       // words; longer texts get an overview
  const MOST = 6;        // words that the overview lists
  const READINGS = {
    continuous: 'The original words; their vectors moved as far as the colour says.',
    nearest: 'Each word replaced by the word nearest to its perturbed vector.',
    direction: 'Each moved word replaced by the neighbour along whose direction it moves.',
  };

  const byId = (id) => document.getElementById(id);
  function element(name, attributes, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === true) node.setAttribute(key, '');
      else if (value !== false && value !== null) node.setAttribute(key, value);
    }
    node.append(...children.filter((child) => child !== null));   // strings become text nodes, never markup
    return node;
  }

  // ---- numbers and names
  const formats = new Map();
  function number(value, digits = 3) {
    if (!formats.has(digits)) {
      formats.set(digits, new Intl.NumberFormat('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits }));
    }
    const text = formats.get(digits).format(value);
    return /[1-9]/.test(text) ? text.replace('-', '\u2212') : text.replace('-', '');   // no −0.0
  }
  function signed(value, digits) {
    const text = number(value, digits);
    return (text.startsWith('\u2212') || !/[1-9]/.test(text) ? '' : '+') + text;
  }
  const percent = (share) => number(100 * share, 1) + '%';
  const count = (value, noun) => number(value, 0) + ' ' + noun + (value === 1 ? '' : 's');
  const plain = (value) => Number(value.toPrecision(6)).toLocaleString('en-US', { maximumFractionDigits: 6 });
  const label = (record, value) => record.label_names[value] || 'class ' + value;
  const flipped = (record) => record.prediction !== record.prediction_adv;
  // The end of a text is attacked like a word, but is none.
  const words = (record) => (record.words.at(-1).word === END ? record.words.slice(0, -1) : record.words);
  const moved = (record) => words(record).filter((word) => word.norm > 0).length;
  const largest = (records) => Math.max(0, ...records.map((r) => r.words.reduce((top, w) => Math.max(top, w.norm), 0))) || 1;

  // ---- theme
  function themeButton(button) {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const dark = () => (document.documentElement.dataset.theme || (query.matches ? 'dark' : 'light')) === 'dark';
    const name = () => { button.textContent = dark() ? 'Light' : 'Dark'; };
    button.addEventListener('click', () => { document.documentElement.dataset.theme = dark() ? 'light' : 'dark'; name(); });
    query.addEventListener('change', name);
    name();
  }

  // ---- a row of radio buttons or check boxes that look like buttons
  function choices(fieldset, title, options, { type = 'radio', checked, onChange }) {
    fieldset.replaceChildren(element('legend', {}, title));
    for (const [value, text] of Object.entries(options)) {
      const input = element('input', { type, name: fieldset.id, value, checked: checked.includes(value) });
      fieldset.append(element('label', { class: 'choice' }, input, element('span', {}, text)));
    }
    fieldset.onchange = () => onChange([...fieldset.querySelectorAll('input:checked')].map((input) => input.value));
  }

  // ---- bars of probabilities: rows of [name, value, strong]
  function meters(rows) {
    const node = element('div', { class: 'meters' });
    for (const [name, value, strong] of rows) {
      const bar = element('b', {});
      bar.style.width = 100 * value + '%';
      node.append(element('span', {}, name), element('span', { class: 'meter' + (strong ? ' strong' : '') }, bar),
        element('span', { class: 'figure' }, number(value)));
    }
    return node;
  }

  function perplexityLine(record, reading) {
    const perplexity = record.perplexity;
    if (!perplexity || typeof perplexity.clean !== 'number') return null;
    const value = perplexity[reading];
    return element('p', { class: 'soft perplexity' }, 'Perplexity ' + number(perplexity.clean, 1) +
      (typeof value === 'number' ? ' → ' + number(value, 1) + ' (' + signed(value - perplexity.clean, 1) + ') read as ' + reading : ''));
  }

  // ---- panels and card
  class Panels {
    // area: where the panels appear; scale: where their colours are explained
    constructor(area, scale) {
      this.area = area;
      this.scale = scale;
      this.card = element('div', { id: 'card', role: 'dialog', 'aria-label': 'Word', 'aria-live': 'polite', hidden: true });
      document.body.append(this.card);
      this.records = [];
      this.open = null;      // the word whose card shows
      this.pinned = false;   // opened by click, tap or Enter rather than by hovering or passing
      area.classList.add('panels');
      this.listen();
    }

    // reading: of READINGS; shared: one colour scale for all methods instead of one for each
    show(records, reading, shared = true) {
      const kept = this.pinned ? this.locate(this.open) : null;   // the card stays open at the same word
      const same = kept && records[kept.panel] && records[kept.panel].words[kept.position] &&
        records[kept.panel].title === this.records[kept.panel].title &&
        records[kept.panel].words[kept.position].word === this.records[kept.panel].words[kept.position].word;
      this.close();
      this.records = records;
      this.reading = reading;
      this.area.replaceChildren();
      this.area.classList.toggle('single', records.length === 1);
      this.scale.replaceChildren();
      if (!records.length) return;
      const top = largest(records);
      this.tops = records.map((record) => (shared ? top : largest([record])));
      const first = records[0];
      this.scale.className = 'scale ' + first.hue;
      this.scale.append(element('span', {}, 'norm 0 ', element('i', {}), shared ? ' ' + number(top) : ' each method’s largest'));
      const push = { red: 'red: pushed away from ' + label(first, 1), blue: 'blue: pushed towards ' + label(first, 1) }[first.hue];
      if (push) this.scale.append(element('span', {}, push));
      records.forEach((record, panel) => this.area.append(this.article(record, panel, shared)));
      if (same) this.openCard(this.find(kept.panel, kept.position), true);
    }

    article(record, panel, shared) {
      const many = words(record).length;
      const settings = [['ε', record.epsilon], ['σ', record.sparsity], ['K', record.k], ['M', record.iterations]]
        .filter(([, value]) => typeof value === 'number').map(([name, value]) => name + ' = ' + plain(value)).join(' · ');
      const wrong = record.prediction !== record.label ? ', wrong from the start' : '';
      const top = shared ? '' : ' · largest norm ' + number(this.tops[panel]);
      const bars = typeof record.probability === 'number' && typeof record.probability_adv === 'number'
        ? meters([['before', record.probability, false], ['after', record.probability_adv, true]]) : null;
      if (bars) {
        bars.setAttribute('role', 'img');
        bars.setAttribute('aria-label', 'Probability of ' + label(record, record.label) + ' ' + number(record.probability) +
          ' → ' + number(record.probability_adv));
      }
      return element('article', { class: record.hue, 'aria-label': record.title },
        element('div', { class: 'bar' }, element('h3', {}, record.title),
          element('span', { class: 'chip' + (flipped(record) ? ' flipped' : '') }, flipped(record) ? 'flipped' : 'unchanged'),
          element('span', { class: 'soft strength' }, settings)),
        element('p', { class: 'prediction' }, 'Prediction ' + label(record, record.prediction) + ' → ' +
          label(record, record.prediction_adv) + wrong),
        bars && element('p', { class: 'soft probability' }, 'Probability of ' + label(record, record.label)), bars,
        perplexityLine(record, this.reading),
        record.readings && record.readings[this.reading] ? element('p', { class: 'soft reread' }, 'The classifier reads these words as ' +
          record.readings[this.reading]) : null,
        record.note ? element('p', { class: 'note' }, record.note)
          : element('p', { class: 'soft moved' }, number(moved(record), 0) + ' of ' + count(many, 'word') + ' moved' +
            (!moved(record) && record.words.at(-1).norm > 0 ? ', only ' + END : '') + top),
        ...(many > LONG && moved(record) ? this.overview(record, panel) : []),
        this.text(record, panel));
    }

    text(record, panel) {
      const text = element('div', { class: 'text', role: 'group', 'aria-label': 'Words under ' + record.title });
      record.words.forEach((word, position) => {
        const displayed = this.displayed(word);
        const end = word.word === END && position === record.words.length - 1;
        const node = element('button', { type: 'button', tabindex: position ? -1 : 0, 'data-panel': panel, 'data-position': position,
          class: 'word' + (displayed !== word.word ? ' changed' : '') + (end ? ' end' : ''), 'aria-haspopup': 'dialog', dir: 'auto' },
          displayed || '\u2423');
        node.style.setProperty('--shade', this.shade(word, panel));
        text.append(node, ' ');
      });
      return text;
    }

    // Where in a long text the words move, and which move furthest: both lead there.
    overview(record, panel) {
      const list = record.words;
      const top = this.tops[panel];
      const strip = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
      for (const [key, value] of Object.entries({ class: 'strip', viewBox: '0 0 ' + list.length + ' 1', preserveAspectRatio: 'none',
        role: 'img', 'aria-label': 'Norm of each word from the first to the last' })) strip.setAttribute(key, value);
      const bars = document.createElementNS('http://www.w3.org/2000/svg', 'path');
      const wide = Math.max(0.85, list.length / 600);   // in a very long text a bar still is a pixel wide
      bars.setAttribute('d', list.map((word, position) => (word.norm > 0
        ? 'M' + position + ' 1v' + -(word.norm / top).toFixed(4) + 'h' + wide + 'V1z' : '')).join(''));
      strip.append(bars);
      strip.addEventListener('click', (event) => {
        const box = strip.getBoundingClientRect();
        this.jump(panel, Math.min(list.length - 1, Math.floor((event.clientX - box.left) / box.width * list.length)), false);
      });
      const order = [...words(record).keys()].filter((position) => list[position].norm > 0)
        .sort((a, b) => list[b].norm - list[a].norm || a - b).slice(0, MOST);
      const most = element('div', { class: 'most', role: 'group', 'aria-label': 'Most-moved words under ' + record.title },
        element('span', { class: 'soft' }, 'most moved'));
      for (const position of order) {
        const button = element('button', { type: 'button', dir: 'auto', 'data-jump': position }, list[position].word);
        button.style.setProperty('--shade', this.shade(list[position], panel));
        button.addEventListener('click', (event) => { event.stopPropagation(); this.jump(panel, position, true); });
        most.append(button);
      }
      return [strip, most];
    }

    shade(word, panel) { return Math.min(1, word.norm / this.tops[panel]).toFixed(3); }
    displayed(word) {
      if (this.reading === 'nearest') return word.nearest;
      return this.reading === 'direction' && word.norm > 0 ? word.toward : word.word;
    }
    locate(node) { return { panel: Number(node.dataset.panel), position: Number(node.dataset.position) }; }
    find(panel, position) { return this.area.querySelector('.word[data-panel="' + panel + '"][data-position="' + position + '"]'); }

    jump(panel, position, open) {
      const node = this.find(panel, position);
      this.close();
      node.scrollIntoView({ block: 'center', behavior: 'instant' });
      this.focus(node);
      if (open) this.openCard(node, true);
    }

    focus(node) {   // one word of each text is a stop of the Tab key
      this.area.querySelectorAll('.word[data-panel="' + node.dataset.panel + '"][tabindex="0"]').forEach((other) => { other.tabIndex = -1; });
      node.tabIndex = 0;
      node.focus({ preventScroll: true });
      node.scrollIntoView({ block: 'nearest', behavior: 'instant' });
    }

    // ---- the card
    openCard(node, pin) {
      const { panel, position } = this.locate(node);
      const record = this.records[panel];
      const word = record.words[position];
      const list = element('dl', {});
      const row = (term, ...value) => list.append(element('dt', {}, term), element('dd', {}, ...value));
      const toward = element('strong', { dir: 'auto' }, word.toward);
      if (!(word.norm > 0)) row('moved', 'no');
      else {
        row(word.max_cosine < 0 ? 'moved away from' : 'moved towards', toward,
          typeof word.max_cosine === 'number' ? ' (cosine ' + number(word.max_cosine) + ')' : '');
      }
      row('nearest word', element('span', { dir: 'auto' }, word.nearest), word.nearest === word.word ? ' (unchanged)' : ' (changed)');
      row('norm', number(word.norm) + (typeof word.relative_norm === 'number' ? ' (' + percent(word.relative_norm) + ' of the largest)' : ''));
      if (typeof word.neighbor_distance === 'number' && word.norm > 0) row('distance to it', number(word.neighbor_distance));
      const close = element('button', { type: 'button', class: 'close', 'aria-label': 'Close' }, '×');
      close.addEventListener('click', () => this.close(true));
      this.card.replaceChildren(close, element('h3', { dir: 'auto' }, word.word || '\u2423'),
        element('div', { class: 'soft' }, (word.word === END && position === words(record).length ? 'end of the text'
          : 'word ' + number(position + 1, 0) + ' of ' + number(words(record).length, 0)) + ', ' + record.title), list);
      if (word.neighbors && word.neighbors.length) this.card.append(this.neighbors(word));
      this.unmark();
      node.classList.add('open');
      node.setAttribute('aria-expanded', 'true');
      this.records.forEach((_, other) => { if (other !== panel) this.find(other, position).classList.add('twin'); });
      this.open = node;
      this.pinned = pin;
      this.card.hidden = false;
      this.place();
      this.card.scrollTop = 0;
    }

    neighbors(word) {
      const body = element('tbody', {});
      word.neighbors.forEach((neighbor, rank) => {
        const value = word.norm > 0 && word.cosines && word.cosines.length ? word.cosines[rank] : null;
        const bar = element('b', { class: value < 0 ? 'negative' : false });
        if (value !== null) {
          bar.style.width = Math.abs(value) * 50 + '%';
          bar.style.left = (value < 0 ? 50 + value * 50 : 50) + '%';
        }
        body.append(element('tr', { class: word.norm > 0 && neighbor === word.toward ? 'chosen' : false },
          element('td', { dir: 'auto', title: neighbor }, neighbor),
          element('td', { class: 'figure' }, value === null ? '–' : number(value)),
          element('td', {}, element('span', { class: 'track' }, bar))));
      });
      return element('table', {}, element('thead', {}, element('tr', {}, element('th', { scope: 'col' }, 'Neighbour'),
        element('th', { scope: 'col' }, 'Cosine'), element('th', {}))), body);
    }

    // Left of the card beside a word's panel, or null where there is no room for it.
    beside(node) {
      const panel = node.closest('article').getBoundingClientRect();
      const width = 22 * parseFloat(getComputedStyle(document.documentElement).fontSize) + 12;
      if (document.documentElement.clientWidth - panel.right >= width) return panel.right + 6;
      return panel.left >= width ? panel.left - width + 6 : null;
    }

    place() {
      const { card, open: node } = this;
      const left = this.beside(node);
      card.className = this.records[this.locate(node).panel].hue + (left === null ? ' inline' : '');
      card.style.left = card.style.top = card.style.maxHeight = '';
      if (left === null) {
        let last = node;   // of the words on its line
        const bottom = [...node.getClientRects()].at(-1).bottom;
        while (last.nextElementSibling && last.nextElementSibling !== card &&
          last.nextElementSibling.getClientRects()[0].top < bottom - 4) last = last.nextElementSibling;
        last.after(card);
        if (this.pinned) {
          card.scrollIntoView({ block: 'nearest', behavior: 'instant' });
          if (node.getBoundingClientRect().top < 0) node.scrollIntoView({ block: 'start', behavior: 'instant' });
        }
        return;
      }
      if (card.parentNode !== document.body) document.body.append(card);
      card.style.maxHeight = innerHeight - 16 + 'px';
      const top = Math.max(8, Math.min(node.getClientRects()[0].top - 8, innerHeight - card.offsetHeight - 8));
      const origin = document.body.getBoundingClientRect();
      card.style.left = left - origin.left + 'px';
      card.style.top = top - origin.top + 'px';
    }

    unmark() {
      this.area.querySelectorAll('.word.open, .word.twin').forEach((node) => {
        node.classList.remove('open', 'twin');
        node.removeAttribute('aria-expanded');
      });
    }

    close(refocus) {
      const node = this.open;
      this.unmark();
      this.card.hidden = true;
      document.body.append(this.card);
      this.open = null;
      this.pinned = false;
      if (refocus && node) {
        this.returning = true;   // this focus opens no preview
        node.focus();
        this.returning = false;
      }
    }

    listen() {
      const wordAt = (event) => event.target.closest('.word');
      const preview = (node) => { if (!this.pinned && this.beside(node) !== null) this.openCard(node, false); };
      this.area.addEventListener('click', (event) => {
        const node = wordAt(event);
        if (!node) return;
        if (this.open === node && this.pinned) this.close();
        else { this.pinned = false; this.focus(node); this.openCard(node, true); }
      });
      this.area.addEventListener('pointerover', (event) => { if (wordAt(event) && event.pointerType === 'mouse') preview(wordAt(event)); });
      this.area.addEventListener('pointerout', (event) => { if (event.pointerType === 'mouse' && this.open && !this.pinned) this.close(); });
      this.area.addEventListener('focusin', (event) => {
        const node = wordAt(event);
        if (!node || this.returning || !node.matches(':focus-visible')) return;
        if (this.pinned) this.openCard(node, true); else preview(node);
      });
      this.area.addEventListener('focusout', () => { if (this.open && !this.pinned) this.close(); });
      this.area.addEventListener('keydown', (event) => {
        const node = wordAt(event);
        if (!node || event.ctrlKey || event.altKey || event.metaKey) return;
        const { panel, position } = this.locate(node);
        const last = this.records[panel].words.length - 1;
        const targets = { ArrowLeft: [panel, position - 1], ArrowRight: [panel, position + 1], ArrowUp: [panel - 1, position],
          ArrowDown: [panel + 1, position], Home: [panel, 0], End: [panel, last] };
        if (this.pinned && event.key.startsWith('Page')) {   // a long card scrolls
          event.preventDefault();
          this.card.scrollBy({ top: (event.key === 'PageDown' ? 0.8 : -0.8) * this.card.clientHeight, behavior: 'instant' });
        }
        if (event.key in targets) {
          event.preventDefault();
          const target = this.find(...targets[event.key]);
          if (target) this.focus(target);
        }
      });
      document.addEventListener('keydown', (event) => { if (event.key === 'Escape' && this.open) this.close(true); });
      document.addEventListener('click', (event) => {
        if (this.open && this.pinned && !wordAt(event) && !event.target.closest('#card')) this.close();
      });
      addEventListener('resize', () => { if (this.open) this.place(); });
    }
  }

  return { END, READINGS, Panels, byId, choices, count, element, flipped, label, largest, meters, moved, number, percent, plain, signed,
    themeButton, words };
})();
