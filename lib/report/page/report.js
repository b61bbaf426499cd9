// Turns the still pictures of a report into charts: values under the pointer, zoom, and x in steps, tokens or hours.
// Texts come from files of a run: they are set as text, never as HTML.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('figures').textContent);
  const names = {step: 'optimizer step', tokens: 'tokens', hours: 'hours'};
  const charts = [];
  let axis = 'step', last = 0;  // of x

  const element = (name, text, attributes = {}) => {
    const made = Object.assign(document.createElement(name), attributes);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const color = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  const short = value => value === null || value === undefined ? '' : Math.abs(value) >= 1e5 || Number.isInteger(value)
    ? value.toLocaleString('en', {maximumFractionDigits: 0}) : String(Number(value.toPrecision(5)));
  const tick = value => {
    for (const [size, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']])
      if (Math.abs(value) >= size) return Number((value / (size === 1e4 ? 1e3 : size)).toPrecision(4)) + letter;
    return String(Number(value.toPrecision(4)));
  };

  // Index of the first element that is not below x.
  const lower = (list, x) => {
    let low = 0, high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] < x) low = middle + 1; else high = middle;
    }
    return low;
  };
  // Tokens or hours at a step, linear between the logged ones.
  const position = (run, step) => {
    if (axis === 'step') return step;
    const {x, y} = run[axis], i = lower(x, step);
    if (i === 0) return y[0];
    if (i === x.length) return y[i - 1];
    return y[i - 1] + (y[i] - y[i - 1]) * (step - x[i - 1]) / (x[i] - x[i - 1]);
  };

  // Where each line has its points. Charts over the steps begin at 0 and end together.
  const places = plot => plot.lines.map(line => plot.x ? line.x : line.x.map(step => position(data.runs[line.run], step)));
  const end = () => Math.max(...data.plots.filter(plot => !plot.x).flatMap(places).map(list => list.length ? list[list.length - 1] : 0));

  // Rows of dygraphs: x, then a value of each line, or null. With an interval: [low, value, high].
  function place(chart) {
    const {plot} = chart, interval = plot.lines.some(line => line.low), rows = new Map();
    const nothing = () => new Array(plot.lines.length).fill(null);
    if (!plot.x) for (const x of [0, last]) rows.set(x, nothing());
    chart.x = places(plot);
    plot.lines.forEach((line, i) => line.y.forEach((y, j) => {
      const x = chart.x[i][j];
      if (!rows.has(x)) rows.set(x, nothing());
      rows.get(x)[i] = interval ? [line.low ? line.low[j] : y, y, line.high ? line.high[j] : y] : y;
    }));
    return [...rows].sort((a, b) => a[0] - b[0]).map(([x, values]) => [x, ...values]);
  }

  // The value of a line nearest to x.
  function nearest(chart, i, x) {
    const at = chart.x[i], line = chart.plot.lines[i];
    let j = lower(at, x);
    if (j === at.length || (j > 0 && x - at[j - 1] < at[j] - x)) --j;
    const interval = line.low ? ` (${short(line.low[j])} to ${short(line.high[j])})` : '';
    return short(line.y[j]) + interval;
  }

  // Under a chart: color and label of each line, and its value under the pointer.
  function keys(chart, x) {
    const all = document.createDocumentFragment();
    chart.plot.lines.forEach((line, i) => {
      if (line.faint) return;
      const key = element('span'), sample = element('i', '', {className: line.color > 5 ? 'dashed' : ''});
      sample.style.borderTopColor = color('c' + (line.color % 6 + 1));
      if (line.label) key.append(sample, line.label + ' ');
      if (x !== undefined && line.y.length) key.append(element('b', nearest(chart, i, x)));
      all.append(key);
    });
    if (x !== undefined) all.append(element('span', `at ${chart.plot.x || names[axis]} ${short(x)}`));
    return all;
  }

  const colors = plot => ({
    colors: plot.lines.map(line => color('c' + (line.color % 6 + 1)) + (line.faint ? '50' : '')),
    axisLineColor: color('soft'), gridLineColor: color('grid')});

  function draw(figure) {
    const plot = data.plots[Number(figure.dataset.plot)];
    const chart = {plot}, live = element('div', undefined, {className: 'live'});
    const caption = element('figcaption', plot.title);
    caption.append(element('span', plot.unit, {className: 'unit'}), saver('CSV', plot, () => csv(chart)),
                   saver('SVG', plot, () => svg(figure)));
    const box = element('div', undefined, {className: 'chart'}), under = element('div', undefined, {className: 'keys'});
    live.append(caption, box, under);
    figure.prepend(live);
    figure.classList.add('drawn');
    const model = {...Dygraph.defaultInteractionModel};
    for (const touch of ['touchstart', 'touchmove', 'touchend']) delete model[touch];  // they scroll the page
    const series = {};
    plot.lines.forEach((line, i) => series[i] = {strokeWidth: line.faint ? 1 : 2, drawPoints: line.dots, pointSize: 2.5,
                                                strokePattern: line.color > 5 ? [7, 3] : null});
    chart.graph = new Dygraph(box, place(chart), {
      ...colors(plot), series, labels: ['x', ...plot.lines.map((_, i) => String(i))], labelsDiv: under, legend: 'always',
      legendFormatter: shown => keys(chart, shown.x), customBars: plot.lines.some(line => line.low), fillAlpha: 0.2,
      logscale: plot.log, valueRange: [plot.low, plot.high], connectSeparatedPoints: true, interactionModel: model,
      xRangePad: 4, xlabel: plot.x || names[axis], xLabelHeight: 16,
      axes: {x: {axisLabelFormatter: tick, pixelsPerLabel: 50}, y: {axisLabelFormatter: tick, axisLabelWidth: 46}},
      zoomCallback: (from, to) => zoom(chart, from, to)});
    charts.push(chart);
  }

  // All charts over the steps show the same range.
  function zoom(zoomed, from, to) {
    if (zoomed.plot.x) return;
    const window = zoomed.graph.isZoomed('x') ? [from, to] : null;
    for (const {plot, graph} of charts)
      if (!plot.x && graph !== zoomed.graph) graph.updateOptions({dateWindow: window});
  }

  function turn(to) {
    axis = to;
    last = end();
    for (const chart of charts)
      if (!chart.plot.x) chart.graph.updateOptions({file: place(chart), dateWindow: null, xlabel: names[axis]});
    for (const button of document.querySelectorAll('.switch button'))
      button.setAttribute('aria-pressed', button.dataset.axis === axis);
  }

  function saver(kind, plot, content) {
    const button = element('button', kind, {type: 'button', title: `save as ${plot.file}.${kind.toLowerCase()}`});
    button.addEventListener('click', () => {
      const types = {CSV: 'text/csv', SVG: 'image/svg+xml'};
      const link = element('a', '', {download: `${plot.file}.${kind.toLowerCase()}`,
                                     href: URL.createObjectURL(new Blob([content()], {type: types[kind]}))});
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    return button;
  }

  function csv({plot, x}) {
    const quoted = text => '"' + text.replaceAll('"', '""') + '"';
    let text = `line,${quoted(plot.x || names[axis])},${quoted([plot.title, plot.unit].filter(Boolean).join(', '))}\n`;
    plot.lines.forEach((line, i) => line.y.forEach((y, j) => {
      text += `${quoted(line.label + (line.faint ? ' (as logged)' : ''))},${x[i][j]},${y}\n`;
    }));
    return text;
  }

  function svg(figure) {
    const picture = figure.querySelector('svg').cloneNode(true);
    const style = document.createElementNS('http://www.w3.org/2000/svg', 'style');
    style.textContent = document.getElementById('pictures').textContent + 'svg { background: var(--paper); }';
    picture.prepend(style);
    return new XMLSerializer().serializeToString(picture);
  }

  const figures = [...document.querySelectorAll('figure[data-plot]')];
  if (!figures.length) return;
  const offered = Object.keys(names).filter(name => name === 'step' || data.runs.every(run => run[name].x.length > 1));
  const control = document.querySelector('.switch');
  for (const name of offered) {
    const button = element('button', name === 'step' ? 'steps' : name, {type: 'button'});
    button.dataset.axis = name;
    button.addEventListener('click', () => turn(name));
    control.append(button);
  }
  control.style.display = 'flex';
  control.append(element('span', 'drag to zoom, double-click to reset'));

  turn('step');
  // Charts need a size, so that those of a folded part wait until it opens.
  for (const figure of figures) {
    const folded = figure.closest('details');
    if (!folded || folded.open) draw(figure);
    else folded.addEventListener('toggle', () => figure.classList.contains('drawn') || draw(figure), {once: true});
  }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    for (const {plot, graph} of charts) graph.updateOptions(colors(plot));
  });
  let unfolded = [];
  addEventListener('beforeprint', () => {
    unfolded = [...document.querySelectorAll('details:not([open])')];
    for (const part of unfolded) part.open = true;
  });
  addEventListener('afterprint', () => unfolded.forEach(part => part.open = false));
})();
