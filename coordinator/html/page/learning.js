// Loss, accuracy, learning rate, gradient norm.
const Learning = (() => {
  const {several, colorOf, named} = Runs;

  function lossLines(data) {
    return data.runs.flatMap(run => {
      const color = colorOf(data, run);
      const lines = [];
      if (run.curves.loss && (!several(data) || !run.smoothed)) {
        lines.push({
          label: named(data, run, "training"),
          color,
          data: Curves.points(run.curves.loss),
          faint: Boolean(run.smoothed),
          width: run.smoothed ? 1 : 2,
        });
      }
      if (run.smoothed) {
        lines.push({
          label: several(data) ? run.name : "mean of " + run.smoothed.window + " steps",
          color,
          data: Curves.points(run.smoothed),
          width: 2,
        });
      }
      if (run.evaluations) {
        lines.push({
          label: named(data, run, "test"),
          color: several(data) ? color : () => Theme.color("backward"),
          points: true,
          dash: [4, 3],
          data: run.evaluations.map(e => ({x: e.step, y: e.loss})),
        });
      }
      const marks = (steps, label, at, name, text) => {
        if (steps && steps.length) {
          lines.push({
            label: named(data, run, label),
            color: name,
            cross: true,
            data: steps.map(s => ({x: s.step ?? s, y: at, text: text(s)})),
          });
        }
      };
      marks(
        run.skipped,
        Format.plural(run.skipped_steps, "skipped step"),
        0.04,
        () => Theme.color("bad"),
        s => s.reasons.join("; ") || "not finite",
      );
      if (!several(data))
        marks(
          run.spikes,
          Format.plural(run.spikes ? run.spikes.length : 0, "spike"),
          0.1,
          () => Theme.color("commit"),
          () => "far above the steps before",
        );
      return lines;
    });
  }

  function draw(page, data, group) {
    const lines = lossLines(data);
    if (!lines.length) return;
    const cards = Elements.cards(
      Elements.section(page, "Learning", "Drag over a stretch of any curve to zoom them all, double-click to go back."),
    );
    const loss = (value, exact) => Format.number(value, exact ? 5 : 3);
    Curves.card({parent: cards, title: "Loss", lines, format: loss, canLog: true, group, height: 320, wide: true});
    // One evaluation is a figure, not a curve.
    const evaluated = data.runs.filter(
      run => run.evaluations && run.evaluations.filter(e => e.top1 !== undefined).length > 1,
    );
    if (evaluated.length) {
      Curves.card({
        parent: cards,
        title: "Top-1 accuracy on the test set",
        group,
        format: v => Format.percent(v),
        lines: evaluated.map(run => ({
          label: run.name,
          color: colorOf(data, run),
          points: true,
          data: run.evaluations.filter(e => e.top1 !== undefined).map(e => ({x: e.step, y: e.top1})),
        })),
      });
    }
    const rates = Runs.curves(data, "learning_rate");
    if (rates.length)
      Curves.card({
        parent: cards,
        title: "Learning rate",
        lines: rates,
        group,
        format: v => Format.number(v, 3),
        zero: true,
      });
    const norms = Runs.curves(data, "grad_norm");
    if (norms.length) {
      Curves.card({
        parent: cards,
        title: "Gradient norm",
        note: "of the mean gradient, before clipping",
        lines: norms,
        group,
        format: v => Format.number(v, 3),
        canLog: true,
      });
    }
  }

  return {draw};
})();
