// Curves over the steps of one run or several.
const Curves = (() => {
  const points = curve => curve.steps.map((step, i) => ({x: step, y: curve.values[i]}));

  // line: {label, color, data: [{x, y}], width, faint, points (as marks), dash, cross (marks on an axis of their own),
  // legend: its text there if not the label, "" for none; key: of lines that belong together}.
  function dataset(line) {
    const color = line.color();
    if (line.cross) {
      return {
        label: line.label,
        data: line.data,
        yAxisID: "marks",
        showLine: false,
        pointStyle: "crossRot",
        pointRadius: 5,
        pointHoverRadius: 7,
        borderColor: color,
        backgroundColor: color,
        borderWidth: 2,
        pointBorderWidth: 2,
      };
    }
    return {
      label: line.label,
      data: line.data,
      borderColor: line.faint ? Theme.faded(color, 0.4) : color,
      backgroundColor: line.faint ? Theme.faded(color, 0.4) : color,
      borderWidth: line.width || 1.6,
      borderDash: line.dash || [],
      borderJoinStyle: "round",
      pointRadius: line.points ? 4 : line.data.length === 1 ? 3 : 0,
      pointHoverRadius: line.points ? 6 : 3,
      pointBorderColor: line.points ? Theme.color("card") : color,
      pointBorderWidth: line.points ? 1.5 : 0,
      // Marks at the edge are drawn whole.
      clip: 6,
      // Evaluation points above curves, strong curves above faint ones.
      order: line.points ? 0 : line.faint ? 2 : 1,
    };
  }

  // Of a logarithmic axis 1, 2, 5, 10, ...; all where that would leave less than two.
  function fewTicks(axis) {
    const few = axis.ticks.filter(({value}) => {
      const digit = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
      return [1, 2, 5].some(round => Math.abs(digit - round) < 1e-6);
    });
    if (few.length > 1) axis.ticks = few;
  }

  // One entry for all lines of a key, which shows and hides them together.
  function legend(lines) {
    const text = line => line.legend ?? line.label;
    return {
      display: lines.length > 1,
      labels: {
        filter: item => text(lines[item.datasetIndex]) !== "",
        generateLabels: chart =>
          Chart.defaults.plugins.legend.labels
            .generateLabels(chart)
            .map(item => ({...item, text: text(lines[item.datasetIndex])})),
      },
      onClick: (event, item, {chart}) => {
        const visible = !chart.isDatasetVisible(item.datasetIndex);
        const {key} = lines[item.datasetIndex];
        lines.forEach((line, i) => {
          if (i === item.datasetIndex || (key !== undefined && line.key === key))
            chart.setDatasetVisibility(i, visible);
        });
        chart.update();
      },
    };
  }

  // {parent, title, note, lines, format (of values), yTitle, canLog, log, group, height, zero, and as a card}
  function card(options) {
    const lines = options.lines.filter(line => line.data.length > 0);
    let logarithmic = Boolean(options.log);
    let entry = null;
    const controls = [];
    if (options.canLog && lines.every(line => line.cross || line.data.every(point => point.y > 0))) {
      const toggle = Elements.button(
        "log scale",
        () => {
          logarithmic = !logarithmic;
          toggle.setAttribute("aria-pressed", logarithmic);
          Charts.draw(entry);
        },
        {"aria-pressed": logarithmic},
      );
      controls.push(toggle);
    }
    const box = Elements.card(options.parent, {...options, controls});
    const canvas = Elements.canvas(box, options.height || 240, options.title + " over the steps");
    entry = Charts.add(
      canvas,
      () => ({
        type: "line",
        plugins: [Zoom.Selection, Crosshair],
        data: {datasets: lines.map(dataset)},
        options: {
          parsing: false,
          normalized: true,
          interaction: {mode: "nearest", axis: "x", intersect: false},
          layout: {padding: {right: 6, top: 6}},
          scales: {
            x: Charts.axis(options.xTitle ?? "step", value => Format.count(value), {
              type: "linear",
              ...(options.group?.view || {}),
            }),
            y: Charts.axis(
              options.yTitle,
              value => options.format(value),
              logarithmic
                ? {type: "logarithmic", bounds: "data", grace: "5%", afterBuildTicks: fewTicks}
                : {beginAtZero: Boolean(options.zero)},
            ),
            marks: {type: "linear", axis: "y", display: false, min: 0, max: 1},
          },
          plugins: {
            legend: legend(lines),
            tooltip: {
              callbacks: {
                title: items => (items.length ? "step " + Format.count(items[0].parsed.x) : ""),
                label: item =>
                  item.raw.text
                    ? item.dataset.label + ": " + item.raw.text
                    : " " + item.dataset.label + "  " + options.format(item.parsed.y, true),
              },
            },
          },
        },
      }),
      options.group,
    );
    return entry;
  }

  // A thin line through what the tooltip is about.
  const Crosshair = {
    id: "crosshair",
    afterDatasetsDraw(chart) {
      const active = chart.tooltip && chart.tooltip.getActiveElements();
      if (!active || !active.length || chart.$drag) return;
      const {ctx, chartArea} = chart;
      ctx.save();
      ctx.strokeStyle = Theme.color("faint");
      ctx.setLineDash([3, 3]);
      ctx.beginPath();
      ctx.moveTo(active[0].element.x, chartArea.top);
      ctx.lineTo(active[0].element.x, chartArea.bottom);
      ctx.stroke();
      ctx.restore();
    },
  };

  return {card, points};
})();
