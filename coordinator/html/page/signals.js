// Signals at the cut points: whether what crosses stays healthy.
const Signals = (() => {
  const {several, colorOf, rowName} = Runs;

  const kSignals = [
    ["z_rms", "Size of what crosses", "root mean square of z; should neither vanish nor grow"],
    ["z_effective_rank", "Effective rank of what crosses", "how many directions z uses; near 1: it has collapsed"],
    ["gradient_rms_before", "Gradient before the cut", "root mean square, on the encoder's side"],
    ["gradient_rms_after", "Gradient after the cut", "root mean square, on the decoder's side"],
  ];
  const kDashes = [[], [6, 4], [2, 3], [8, 3, 2, 3]];

  function draw(page, data, group) {
    const known = data.runs.filter(run => run.signals);
    if (!known.length) return;
    const others = [...new Set(known.flatMap(run => Object.values(run.signals).flatMap(Object.keys)))]
      .filter(name => !kSignals.some(([signal]) => signal === name))
      .map(name => [name, name, null]);
    const cards = Elements.cards(
      Elements.section(
        page,
        "Signals at the cut points",
        "Of the first micro-batch of each step, at every boundary, cut or not.",
      ),
    );
    for (const [name, title, note] of [...kSignals, ...others]) {
      const lines = known.flatMap(run =>
        Object.keys(run.signals)
          .filter(cut => run.signals[cut][name])
          .map((cut, i) => ({
            label: rowName(data, run, cut),
            legend: Runs.legend(data, run) && rowName(data, {name: Runs.legend(data, run)}, cut),
            key: Runs.seriesOf(data, run) + cut,
            data: Curves.points(run.signals[cut][name]),
            width: 1.4,
            color: several(data) ? colorOf(data, run) : () => Theme.series(i),
            dash: several(data) ? kDashes[i % kDashes.length] : [],
          })),
      );
      if (!lines.length) continue;
      Curves.card({
        parent: cards,
        title,
        note,
        lines,
        group,
        format: v => Format.number(v, 3),
        canLog: true,
        log: name.startsWith("gradient"),
      });
    }
  }

  return {draw};
})();
