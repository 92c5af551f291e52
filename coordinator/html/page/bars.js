// Stacked horizontal bars, and histograms.
const Bars = (() => {
  const kRow = 34; // pixels
  const kHeight = 240;

  // {parent, title, note, rows: labels, parts: [{label, color, values: by row}], ends: texts by row, format, wide}
  // A value of null is nothing to draw.
  function stacked(options) {
    const parts = options.parts.filter(part => part.values.some(value => value > 0));
    const box = Elements.card(options.parent, options);
    const canvas = Elements.canvas(
      box,
      Math.max(options.rows.length * kRow + 80, options.wide ? 0 : kHeight),
      options.title,
    );
    return Charts.add(canvas, () => ({
      type: "bar",
      plugins: [EndLabels],
      data: {
        labels: options.rows,
        datasets: parts.map(part => ({
          label: part.label,
          data: part.values,
          backgroundColor: part.color(),
          stack: "all",
          maxBarThickness: 22,
          borderColor: Theme.color("card"),
          borderWidth: {right: 1},
          borderSkipped: false,
        })),
      },
      options: {
        indexAxis: "y",
        interaction: {mode: "index", axis: "y", intersect: false},
        layout: {padding: {right: options.ends ? 12 + 6.4 * Math.max(...options.ends.map(text => text.length)) : 6}},
        scales: {
          x: Charts.axis(options.xTitle, value => options.format(value), {stacked: true, beginAtZero: true}),
          y: {
            stacked: true,
            grid: {display: false, drawBorder: false},
            ticks: {color: Theme.color("ink"), autoSkip: false},
          },
        },
        plugins: {
          endLabels: {texts: options.ends || []},
          legend: {display: parts.length > 1},
          tooltip: {
            filter: item => item.parsed.x > 0,
            callbacks: {
              label: item => {
                const total = parts.reduce((sum, part) => sum + (part.values[item.dataIndex] || 0), 0);
                const share = total > 0 && parts.length > 1 ? "  (" + Format.percent(item.parsed.x / total) + ")" : "";
                return " " + item.dataset.label + "  " + options.format(item.parsed.x) + share;
              },
            },
          },
        },
      },
    }));
  }

  // {parent, title, note, histogram: {from, width, counts}, format, lines: as VerticalLines, xTitle}
  function histogram(options) {
    const {from, width, counts} = options.histogram;
    const wide = width > 0 ? width : Math.abs(from) / 50 || 1;
    const box = Elements.card(options.parent, options);
    const canvas = Elements.canvas(box, kHeight, options.title);
    const low = Math.max(0, Math.min(from, ...options.lines.map(line => line.x)) - wide);
    const high = Math.max(from + wide * counts.length, ...options.lines.map(line => line.x)) + wide;
    return Charts.add(canvas, () => ({
      type: "bar",
      plugins: [VerticalLines],
      data: {
        datasets: [
          {
            label: "steps",
            data: counts.map((count, i) => ({x: from + (i + 0.5) * wide, y: count})),
            backgroundColor: Theme.faded(Theme.color("forward"), 0.75),
            barPercentage: 1,
            categoryPercentage: 0.94,
          },
        ],
      },
      options: {
        parsing: false,
        scales: {
          x: Charts.axis(options.xTitle, value => options.format(value), {
            type: "linear",
            min: low,
            max: high,
            offset: false,
          }),
          y: Charts.axis("steps", value => (Number.isInteger(value) ? Format.count(value) : ""), {beginAtZero: true}),
        },
        plugins: {
          legend: {display: false},
          verticalLines: {lines: options.lines.map(line => ({...line, color: line.color()}))},
          tooltip: {
            callbacks: {
              title: items => {
                const begin = from + items[0].dataIndex * wide;
                return options.format(begin) + " to " + options.format(begin + wide);
              },
              label: item => " " + Format.plural(item.parsed.y, "step"),
            },
          },
        },
      },
    }));
  }

  return {stacked, histogram};
})();
