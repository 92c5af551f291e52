// Runs side by side: the figures of `resbm compare`, arm by arm, against the first.
const Comparison = (() => {
  const {make} = Elements;
  const kPercent = "percent",
    kPoints = "points",
    kPlain = "plain";

  // `better`: -1 less, 1 more, 0 neither. How a difference is said: in percent of the first, in points, as it is.
  const kRows = [
    [
      "quality",
      [
        ["top1", "top-1 accuracy", v => (100 * v).toFixed(2) + " %", 1, kPoints],
        ["bits_per_byte", "bits per byte", v => Format.number(v), -1, kPercent],
        ["perplexity", "perplexity", v => Format.number(v), -1, kPercent],
        ["validation_loss", "test loss", v => Format.number(v), -1, kPercent],
        ["final_loss", "training loss, last step", v => Format.number(v), -1, kPercent],
        ["loss_slope", "slope of the loss, per 100 steps", v => Format.number(v, 3), 0, null],
        ["loss_spikes", "spikes of the loss", v => Format.number(v), -1, kPlain],
        ["skipped_steps", "skipped steps", v => Format.number(v), -1, kPlain],
      ],
    ],
    [
      "speed",
      [
        ["tokens_per_second", "tokens a second", v => Format.count(v), 1, kPercent],
        ["samples_per_second", "samples a second", v => Format.number(v), 1, kPercent],
        ["step_seconds_median", "median step", Format.seconds, -1, kPercent],
        ["planned_step_seconds", "planned step", Format.seconds, 0, null],
        ["epoch_seconds", "epoch", Format.seconds, -1, kPercent],
        ["training_seconds", "training time", Format.seconds, -1, kPercent],
        ["steps", "steps", Format.count, 0, null],
        ["utilization", "stages computing", v => Format.percent(v), 1, kPoints],
        ["communication_share_exposed", "waiting for links", v => Format.percent(v), -1, kPoints],
        ["communication_share_total", "time in transfers", v => Format.percent(v), -1, kPoints],
        ["bubble_share", "idle by the schedule", v => Format.percent(v), -1, kPoints],
      ],
    ],
    [
      "bytes",
      [
        ["bytes_per_step", "at the cuts, a step", Format.bytes, -1, kPercent],
        ["fp16_bytes_per_step", "uncompressed fp16", Format.bytes, 0, null],
        ["planned_bytes_per_sample", "at all cut points, a sample, planned", Format.bytes, -1, kPercent],
        ["planned_fp16_bytes_per_sample", "uncompressed fp16, planned", Format.bytes, 0, null],
      ],
    ],
    [
      "size",
      [
        ["parameters", "parameters", Format.count, 0, kPercent],
        ["peak_memory_bytes", "peak memory, fullest stage", Format.bytes, -1, kPercent],
      ],
    ],
  ];

  // Figures that the job alone decides: one run says them all.
  const kExact = new Set(["bytes_per_step", "planned_bytes_per_sample"]);

  // A color only where the 95 % interval over the seeds does not reach zero; of one run nobody knows.
  function judgement(name, figure, better) {
    const sure =
      kExact.has(name) || (Format.isNumber(figure.margin95) && Math.abs(figure.difference) > figure.margin95);
    if (!sure || better === 0) return "";
    return figure.difference * better > 0 ? "good" : "bad";
  }

  function difference(name, figure, base, better, kind) {
    if (!kind || figure.difference === undefined) return null;
    const by = figure.difference;
    if (by === 0) return make("small", {}, "=");
    if (kind === kPercent && base.mean === 0) return null;
    const [scaled, decimals, unit] =
      kind === kPercent
        ? [(100 * by) / Math.abs(base.mean), 1, " %"]
        : kind === kPoints
          ? [100 * by, 2, " pt"]
          : [by, 1, ""];
    const text = Math.abs(scaled) >= 100 ? scaled.toFixed(0) : scaled.toFixed(decimals);
    return make("small", {class: judgement(name, figure, better)}, Format.signed(text) + unit);
  }

  function cell(arm, first, name, format, better, kind) {
    const figure = arm.figures[name];
    if (!figure) return "–";
    // Two digits of a deviation say enough; with a unit it has few already.
    const deviation = /[a-z%]/i.test(format(figure.mean)) ? format : value => Format.number(value, 2);
    const spread = figure.runs > 1 && figure.deviation > 0 ? " ± " + deviation(figure.deviation) : "";
    return make(
      "span",
      {},
      format(figure.mean) + spread,
      arm === first ? null : difference(name, figure, first.figures[name] || {}, better, kind) || make("small", {}),
    );
  }

  function runNames(data, arm) {
    const names = data.runs.filter(run => run.arm === arm).map(run => run.name);
    return names.length > 2 ? Format.plural(names.length, "run") : names.join(", ");
  }

  function table(parent, data) {
    const {arms} = data.comparison;
    const columns = [
      {title: ""},
      ...arms.map((arm, i) => ({
        title: make("span", {}, Elements.dot(i), arm.name, make("div", {class: "runs"}, runNames(data, i))),
      })),
    ];
    const rows = [];
    for (const [group, figures] of kRows) {
      const present = figures.filter(([name]) => arms.some(arm => arm.figures[name]));
      if (!present.length) continue;
      rows.push({group});
      for (const [name, label, format, better, kind] of present) {
        rows.push([label, ...arms.map(arm => cell(arm, arms[0], name, format, better, kind))]);
      }
    }
    Elements.card(parent, {title: "Figures", wide: true, long: true}).append(Elements.table(columns, rows));
  }

  function list(parent, title, lines) {
    if (!lines.length) return;
    Elements.card(parent, {title, wide: true}).append(
      make(
        "ul",
        {class: "plain"},
        lines.map(line => make("li", {}, line)),
      ),
    );
  }

  function draw(page, data) {
    const {comparison} = data;
    if (!comparison) return;
    const section = Elements.section(
      page,
      "Side by side",
      comparison.arms.length > 1
        ? "Small figures are the difference to " +
            comparison.arms[0].name +
            "; ± is the standard deviation over runs that differ in the seed only. Green and red: the difference is " +
            "beyond the noise of the seeds (95 %)."
        : "All runs are of one job and differ in the seed only; ± is the standard deviation over them.",
    );
    const cards = Elements.cards(section);
    table(cards, data);
    list(cards, "What may be said", comparison.verdicts);
    list(cards, "Beware", comparison.caveats);
    list(cards, "Where the jobs differ", comparison.differences);
  }

  return {draw};
})();
