// Loss, accuracy, learning rate, gradient norm.
const Learning = (() => {
  const {several, colorOf, named} = Runs;

  // Crosses near the top: {steps, label, at: height as a share, color, text: of a step}.
  function marks(data, run, {steps, label, legend, at, color, text}) {
    if (!steps || !steps.length) return [];
    const points = steps.map(step => ({x: step.step ?? step, y: at, text: text(step)}));
    return [{label: named(data, run, label), legend, color, cross: true, data: points}];
  }

  function lossLines(data, run) {
    const color = colorOf(data, run);
    const one = !several(data);
    // Of several runs one line each: the mean, where there is one.
    const common = one ? {color} : {color, legend: Runs.legend(data, run), key: Runs.seriesOf(data, run)};
    const lines = [];
    if (run.curves.loss && (one || !run.smoothed)) {
      lines.push({
        ...common,
        label: named(data, run, "training"),
        data: Curves.points(run.curves.loss),
        faint: Boolean(run.smoothed),
        width: run.smoothed ? 1 : 2,
      });
    }
    if (run.smoothed) {
      lines.push({
        ...common,
        label: one ? "mean of " + run.smoothed.window + " steps" : run.name,
        data: Curves.points(run.smoothed),
        width: 2,
      });
    }
    if (run.evaluations) {
      lines.push({
        ...common,
        ...(one ? {color: () => Theme.color("backward")} : {legend: ""}),
        label: named(data, run, "test"),
        points: true,
        dash: [4, 3],
        data: run.evaluations.map(e => ({x: e.step, y: e.loss})),
      });
    }
    const skipped = Format.plural(run.skipped_steps, "skipped step");
    lines.push(
      ...marks(data, run, {
        steps: run.skipped,
        label: skipped,
        legend: one ? skipped : run === data.runs.find(other => other.skipped) ? "skipped step" : "",
        at: 0.97,
        color: () => Theme.color("bad"),
        text: step => step.reasons.join("; ") || "not finite",
      }),
    );
    if (one) {
      lines.push(
        ...marks(data, run, {
          steps: run.spikes,
          label: Format.plural(run.spikes ? run.spikes.length : 0, "spike"),
          at: 0.91,
          color: () => Theme.color("commit"),
          text: () => "far above the steps before",
        }),
      );
    }
    return lines;
  }

  function accuracyLines(data) {
    return data.runs
      .map(run => ({run, evaluations: (run.evaluations || []).filter(e => e.top1 !== undefined)}))
      .filter(({evaluations}) => evaluations.length > 1) // one is a figure, not a curve
      .map(({run, evaluations}) => ({
        label: run.name,
        legend: Runs.legend(data, run),
        key: Runs.seriesOf(data, run),
        color: colorOf(data, run),
        points: true,
        data: evaluations.map(e => ({x: e.step, y: e.top1})),
      }));
  }

  function draw(page, data, group) {
    const lines = data.runs.flatMap(run => lossLines(data, run));
    if (!lines.length) return;
    const cards = Elements.cards(
      Elements.section(page, "Learning", "Drag over a stretch of any curve to zoom them all, double-click to go back."),
    );
    const loss = (value, exact) => Format.number(value, exact ? 5 : 3);
    Curves.card({parent: cards, title: "Loss", lines, format: loss, canLog: true, group, height: 320, wide: true});
    const charts = [
      {title: "Top-1 accuracy on the test set", lines: accuracyLines(data), format: v => Format.percent(v)},
      {title: "Learning rate", lines: Runs.curves(data, "learning_rate"), format: v => Format.number(v, 3), zero: true},
      {
        title: "Gradient norm",
        note: "of the mean gradient, before clipping",
        lines: Runs.curves(data, "grad_norm"),
        format: v => Format.number(v, 3),
        canLog: true,
      },
    ].filter(chart => chart.lines.length);
    for (const chart of charts) Curves.card({parent: cards, group, third: charts.length === 3, ...chart});
  }

  return {draw};
})();
