// What all charts have in common: looks, tooltips, redrawing when the theme changes or the page is printed.
const Charts = (() => {
  // {canvas, make, chart, group}: `make` gives the configuration in the colors of the moment.
  const entries = [];

  function setDefaults() {
    const defaults = Chart.defaults;
    defaults.animation = false;
    defaults.maintainAspectRatio = false;
    defaults.font.family = getComputedStyle(document.body).fontFamily;
    defaults.font.size = 12;
    defaults.color = Theme.color("soft");
    defaults.borderColor = Theme.color("line");
    Object.assign(defaults.plugins.legend, {position: "top", align: "start"});
    Object.assign(defaults.plugins.legend.labels, {
      usePointStyle: true,
      boxWidth: 8,
      boxHeight: 8,
      padding: 12,
      sort: (a, b) => a.datasetIndex - b.datasetIndex,
    });
    Object.assign(defaults.plugins.tooltip, {
      backgroundColor: Theme.color("card"),
      titleColor: Theme.color("ink"),
      bodyColor: Theme.color("ink"),
      footerColor: Theme.color("soft"),
      borderColor: Theme.color("faint"),
      borderWidth: 1,
      padding: 10,
      cornerRadius: 7,
      boxPadding: 5,
      usePointStyle: true,
      caretSize: 0,
      caretPadding: 10,
      footerFont: {weight: "normal"},
    });
  }

  function draw(entry) {
    if (entry.chart) entry.chart.destroy();
    const configuration = entry.make();
    if (entry.group && entry.group.view) Object.assign(configuration.options.scales.x, entry.group.view);
    entry.chart = new Chart(entry.canvas, configuration);
  }

  function add(canvas, make, group = null) {
    const entry = {canvas, make, group, chart: null};
    entries.push(entry);
    draw(entry);
    if (group) group.add(entry);
    return entry;
  }

  function redraw() {
    setDefaults();
    for (const entry of entries) draw(entry);
  }

  function resize() {
    for (const entry of entries) entry.chart.resize();
  }

  // An axis with thin lines and few ticks.
  function axis(title, format, more = {}) {
    return {
      title: {
        display: Boolean(title),
        text: title,
        color: Theme.color("faint"),
        font: {size: 11.5},
        padding: {top: 0, bottom: 0},
      },
      grid: {color: Theme.color("line"), drawTicks: false, drawBorder: false},
      ticks: {padding: 8, maxTicksLimit: 7, maxRotation: 0, callback: format},
      ...more,
    };
  }

  return {setDefaults, add, draw, redraw, resize, axis};
})();

// Vertical lines at values of x, with a label at the top: options {lines: [{x, label, color, dash, row: of the label,
// above: its label is outside}]}.
const VerticalLines = {
  id: "verticalLines",
  afterDatasetsDraw(chart, args, options) {
    const {ctx, chartArea, scales} = chart;
    ctx.save();
    ctx.font = "11px " + Chart.defaults.font.family;
    for (const line of options.lines || []) {
      const x = scales.x.getPixelForValue(line.x);
      if (x < chartArea.left - 1 || x > chartArea.right + 1) continue;
      ctx.strokeStyle = ctx.fillStyle = line.color;
      ctx.setLineDash(line.dash || []);
      ctx.beginPath();
      ctx.moveTo(x, chartArea.top);
      ctx.lineTo(x, chartArea.bottom);
      ctx.stroke();
      if (!line.label) continue;
      const left = x + ctx.measureText(line.label).width + 6 > chartArea.right;
      ctx.textAlign = left ? "right" : "left";
      ctx.fillText(
        line.label,
        x + (left ? -5 : 5),
        line.above ? chartArea.top - 4 : chartArea.top + 10 + 14 * (line.row || 0),
      );
    }
    ctx.restore();
  },
};

// A text at the end of each horizontal bar: options {texts: by row}.
const EndLabels = {
  id: "endLabels",
  afterDatasetsDraw(chart, args, options) {
    const {ctx, scales} = chart;
    ctx.save();
    ctx.font = "12px " + Chart.defaults.font.family;
    ctx.fillStyle = Theme.color("soft");
    ctx.textBaseline = "middle";
    (options.texts || []).forEach((text, row) => {
      let end = scales.x.getPixelForValue(0);
      let y = null;
      for (const meta of chart.getSortedVisibleDatasetMetas()) {
        const bar = meta.data[row];
        if (!bar || Number.isNaN(bar.x)) continue;
        end = Math.max(end, bar.x);
        y = bar.y;
      }
      if (y !== null) ctx.fillText(text, end + 8, y);
    });
    ctx.restore();
  },
};
