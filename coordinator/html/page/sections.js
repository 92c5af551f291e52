// The parts of the report below its top. Each leaves out what no run knows.
const Sections = (() => {
  const {make} = Elements;

  const several = data => data.runs.length > 1;
  // Runs of one arm share a color; where all are one arm each has its own.
  const seriesOf = (data, run) =>
    data.comparison && data.comparison.arms.length > 1 ? run.arm : data.runs.indexOf(run);
  const colorOf = (data, run) => () => Theme.series(seriesOf(data, run));
  const named = (data, run, text) => (several(data) ? run.name + ", " + text : text);
  // "stage 0", or of several runs "NAME: stage 0".
  const rowName = (data, run, text) => (several(data) ? run.name + " · " + text : text);

  // ---- Learning ----

  function lossLines(data) {
    return data.runs.flatMap(run => {
      const color = colorOf(data, run);
      const lines = [];
      if (run.curves.loss && (!several(data) || !run.smoothed)) {
        lines.push({label: named(data, run, "training"), color, data: Curves.points(run.curves.loss), faint: Boolean(run.smoothed), width: run.smoothed ? 1 : 2});
      }
      if (run.smoothed) {
        lines.push({
          label: several(data) ? run.name : "mean of " + run.smoothed.window + " steps", color,
          data: Curves.points(run.smoothed), width: 2,
        });
      }
      if (run.evaluations) {
        lines.push({
          label: named(data, run, "test"), color: several(data) ? color : () => Theme.color("backward"), points: true,
          dash: [4, 3], data: run.evaluations.map(e => ({x: e.step, y: e.loss})),
        });
      }
      const marks = (steps, label, at, name, text) => {
        if (steps && steps.length) {
          lines.push({label: named(data, run, label), color: name, cross: true, data: steps.map(s => ({x: s.step ?? s, y: at, text: text(s)}))});
        }
      };
      marks(run.skipped, Format.plural(run.skipped_steps, "skipped step"), 0.04, () => Theme.color("bad"),
            s => s.reasons.join("; ") || "not finite");
      if (!several(data)) marks(run.spikes, Format.plural(run.spikes ? run.spikes.length : 0, "spike"), 0.1, () => Theme.color("commit"), () => "far above the steps before");
      return lines;
    });
  }

  const curveLines = (data, name) => data.runs.filter(run => run.curves[name]).map(run => ({
    label: run.name, color: colorOf(data, run), data: Curves.points(run.curves[name]),
  }));

  function learning(page, data, group) {
    const lines = lossLines(data);
    if (!lines.length) return;
    const cards = Elements.cards(Elements.section(page, "Learning",
      "Drag over a stretch of any curve to zoom them all, double-click to go back."));
    const loss = (value, exact) => Format.number(value, exact ? 5 : 3);
    Curves.card({parent: cards, title: "Loss", lines, format: loss, canLog: true, group, height: 320, wide: true});
    // One evaluation is a figure, not a curve.
    const evaluated = data.runs.filter(run => run.evaluations && run.evaluations.filter(e => e.top1 !== undefined).length > 1);
    if (evaluated.length) {
      Curves.card({
        parent: cards, title: "Top-1 accuracy on the test set", group, format: v => Format.percent(v),
        lines: evaluated.map(run => ({
          label: run.name, color: colorOf(data, run), points: true,
          data: run.evaluations.filter(e => e.top1 !== undefined).map(e => ({x: e.step, y: e.top1})),
        })),
      });
    }
    const rates = curveLines(data, "learning_rate");
    if (rates.length) Curves.card({parent: cards, title: "Learning rate", lines: rates, group, format: v => Format.number(v, 3), zero: true});
    const norms = curveLines(data, "grad_norm");
    if (norms.length) {
      Curves.card({parent: cards, title: "Gradient norm", note: "of the mean gradient, before clipping", lines: norms, group,
                   format: v => Format.number(v, 3), canLog: true});
    }
  }

  // ---- Pipeline ----

  function pipeline(page, data) {
    const traced = data.runs.filter(run => run.timeline);
    const section = Elements.section(page, "Pipeline", traced.length
      ? "From trace.json, which Perfetto (ui.perfetto.dev) and chrome://tracing open too. Of steps " +
        traced[0].timeline.traced.join(" to ") + " the one of median duration is shown."
      : null);
    const cards = Elements.cards(section);
    if (!traced.length) {
      const box = Elements.card(cards, {title: "Timeline", wide: true});
      box.append(make("p", {class: "note no-trace"}, "No trace.json in this run" + (several(data) ? " or the others" : "") +
        ". `resbm train` writes one of the first steps; run.trace_steps in the job says of how many (0: none)."));
      return;
    }
    for (const run of traced) {
      Timeline.card({parent: cards, run, title: several(data) ? "Timeline of " + run.name : "Timeline"});
    }
  }

  // ---- Time ----

  const timeParts = stage => {
    const known = stage.forward_seconds + stage.backward_seconds + stage.waiting_up_seconds + stage.waiting_down_seconds +
      stage.commit_seconds;
    return {...stage, known};
  };

  function time(page, data, group) {
    const staged = data.runs.filter(run => run.stages && run.figures.steps > 0);
    if (!staged.length) return;
    const cards = Elements.cards(Elements.section(page, "Time",
      "Means over the steps. Waiting “from above” is for activations of the stage before, “from below” for gradients of the stage after."));
    const rows = staged.flatMap(run => run.stages.map(stage => ({
      run, stage: timeParts(stage), step: run.figures.training_seconds / run.figures.steps,
      name: rowName(data, run, "stage " + stage.stage),
    })));
    const part = (label, color, value) => ({label, color: () => Theme.color(color), values: rows.map(value)});
    Bars.stacked({
      parent: cards, title: "Where a step's time goes", wide: rows.length > 3, format: Format.seconds,
      rows: rows.map(row => row.name), xTitle: "a step",
      parts: [
        part("forward", "forward", row => row.stage.forward_seconds),
        part("backward", "backward", row => row.stage.backward_seconds),
        part("optimizer step", "commit", row => row.stage.commit_seconds),
        part("waiting from above", "wait-up", row => row.stage.waiting_up_seconds),
        part("waiting from below", "wait-down", row => row.stage.waiting_down_seconds),
        part("other", "other", row => Math.max(0, row.step - row.stage.known)),
      ],
      ends: rows.map(row => Format.percent(row.stage.utilization, 0) + " computing"),
    });
    if (!several(data) && data.runs[0].step_seconds) {
      const run = data.runs[0];
      const lines = [];
      if (run.figures.step_seconds_median !== undefined) {
        lines.push({x: run.figures.step_seconds_median, label: "median " + Format.seconds(run.figures.step_seconds_median), color: () => Theme.color("ink")});
      }
      if (run.figures.planned_step_seconds !== undefined) {
        lines.push({x: run.figures.planned_step_seconds, label: "planned " + Format.seconds(run.figures.planned_step_seconds), color: () => Theme.color("good"), row: 1, dash: [4, 3]});
      }
      const above = run.step_seconds.above;
      Bars.histogram({
        parent: cards, title: "Step times", histogram: run.step_seconds, lines, format: Format.seconds,
        note: above > 0 ? Format.plural(above, "step") + " took longer than this shows" : null,
      });
    }
    const curves = curveLines(data, "step_seconds");
    if (curves.length) {
      const planned = data.runs.filter(run => run.figures.planned_step_seconds !== undefined && run.curves.step_seconds);
      Curves.card({
        parent: cards, title: "Step time over the run", group, format: Format.seconds, zero: true, canLog: true, wide: true, height: 200,
        lines: curves.concat(planned.map(run => {
          const {steps} = run.curves.step_seconds;
          const y = run.figures.planned_step_seconds;
          return {label: named(data, run, "planned"), color: () => Theme.color("good"), dash: [5, 4], data: [{x: steps[0], y}, {x: steps[steps.length - 1], y}]};
        })),
      });
    }
  }

  // ---- Links ----

  const directionText = b => (b.direction === "activations" ? "activations ↓" : "gradients ↑");

  function againstFp16(times) {
    if (times > 1.05) return Format.number(times, 3) + "× smaller than fp16";
    return times > 0.95 ? "as large as fp16" : Format.number(1 / times, 3) + "× larger than fp16";
  }

  function links(page, data) {
    const cut = data.runs.filter(run => run.boundaries);
    if (!cut.length) return;
    const cards = Elements.cards(Elements.section(page, "Links",
      "Bytes that cross each cut in a step, against the same activation uncompressed. Metadata is all of a message that is not payload."));
    const rows = cut.flatMap(run => run.boundaries.map(b => ({
      run, b, name: rowName(data, run, b.cut_point + " " + directionText(b)), sent: b.payload_bytes + b.metadata_bytes,
      step: run.figures.training_seconds / run.figures.steps,
    })));
    const rest = row => Math.max(0, row.b.uncompressed_bytes.fp16 - row.sent);
    Bars.stacked({
      parent: cards, title: "Bytes a step", wide: true, format: Format.bytes, rows: rows.map(row => row.name),
      parts: [
        {label: "payload", color: () => Theme.color("forward"), values: rows.map(row => row.b.payload_bytes)},
        {label: "metadata", color: () => Theme.color("metadata"), values: rows.map(row => row.b.metadata_bytes)},
        {label: "not sent: rest of fp16", color: () => Theme.color("reference"), values: rows.map(rest)},
      ],
      ends: rows.map(row => againstFp16(row.b.uncompressed_bytes.fp16 / row.sent)),
    });
    Elements.card(cards, {title: "By cut and direction", wide: true}).append(Elements.table(
      [{title: "cut after"}, {title: "direction", text: true}, {title: "codec", text: true}, {title: "r"}, {title: "payload"},
       {title: "metadata"}, {title: "as fp16"}, {title: "as fp32"}, {title: "vs fp16"}, {title: "vs fp32"}, {title: "mean load"}],
      rows.map(({run, b, sent, step}) => [
        rowName(data, run, b.cut_point), b.direction, b.codec, Format.number(b.ratio), Format.bytes(b.payload_bytes),
        Format.bytes(b.metadata_bytes), Format.bytes(b.uncompressed_bytes.fp16), Format.bytes(b.uncompressed_bytes.fp32),
        Format.number(b.uncompressed_bytes.fp16 / sent, 3) + "×", Format.number(b.uncompressed_bytes.fp32 / sent, 3) + "×",
        Format.bitsPerSecond((8 * sent) / step),
      ])));
    const traced = data.runs.filter(run => run.links);
    if (!traced.length) return;
    Elements.card(cards, {
      title: "Transfers, as traced", wide: true,
      note: "Medians over the tensors of the traced steps. Sending: until the connection has taken a tensor; receiving: from its first byte to its last.",
    }).append(Elements.table(
      [{title: "link"}, {title: "tensors"}, {title: "bytes a tensor"}, {title: "sending"}, {title: "receiving"}],
      traced.flatMap(run => run.links.map(link => [
        rowName(data, run, "stage " + link.from + " → stage " + link.to), Format.count(link.tensors),
        Format.bytes(link.bytes / link.tensors), Format.seconds(link.send_us / 1e6),
        link.receive_us > 0 ? Format.seconds(link.receive_us / 1e6) : "–",
      ]))));
  }

  // ---- Memory and parameters ----

  function memory(page, data) {
    const staged = data.runs.filter(run => run.stages);
    if (!staged.length) return;
    const cards = Elements.cards(Elements.section(page, "Stages", "Memory at the step that took most of it."));
    const rows = staged.flatMap(run => run.stages.map(stage => ({run, stage, memory: stage.peak_memory_bytes, name: rowName(data, run, "stage " + stage.stage)})))
    const measured = rows.filter(row => row.memory && row.memory.total > 0);
    if (measured.length) {
      const part = (label, color, name) => ({label, color: () => Theme.color(color), values: measured.map(row => row.memory[name])});
      Bars.stacked({
        parent: cards, title: "Peak memory", wide: true, format: Format.bytes, rows: measured.map(row => row.name),
        parts: [part("weights", "forward", "weights"), part("optimizer", "commit", "optimizer"),
                part("activations", "backward", "activations"), part("buffers", "send", "buffers")],
        ends: measured.map(row => Format.bytes(row.memory.total)),
      });
    }
    const server = row => row.stage.server || {};
    const columns = [
      ["stage", row => row.name], ["device", row => server(row).device_name || row.stage.device, true],
      ["parameters", row => Format.count(row.stage.parameters)], ["forward", row => Format.seconds(row.stage.forward_seconds)],
      ["backward", row => Format.seconds(row.stage.backward_seconds)],
      ["waiting", row => Format.seconds(row.stage.waiting_up_seconds + row.stage.waiting_down_seconds)],
      ["optimizer", row => Format.seconds(row.stage.commit_seconds)],
      ["computing", row => Format.percent(row.stage.utilization)],
      ["GPU busy", row => Format.percent(row.stage.gpu_utilization)],
      ["peak memory", row => (row.memory && row.memory.total > 0 ? Format.bytes(row.memory.total) : "")],
    ].filter(([, text]) => rows.some(row => text(row)));
    Elements.card(cards, {title: "Figures, a step", wide: true}).append(Elements.table(
      columns.map(([title, , text]) => ({title, text})), rows.map(row => columns.map(([, text]) => text(row) || "–"))));
  }

  // ---- Signals ----

  const kSignals = [
    ["z_rms", "Size of what crosses", "root mean square of z; should neither vanish nor grow"],
    ["z_effective_rank", "Effective rank of what crosses", "how many directions z uses; near 1: it has collapsed"],
    ["gradient_rms_before", "Gradient before the cut", "root mean square, on the encoder's side"],
    ["gradient_rms_after", "Gradient after the cut", "root mean square, on the decoder's side"],
  ];
  const kDashes = [[], [6, 4], [2, 3], [8, 3, 2, 3]];

  function signals(page, data, group) {
    const known = data.runs.filter(run => run.signals);
    if (!known.length) return;
    const others = [...new Set(known.flatMap(run => Object.values(run.signals).flatMap(Object.keys)))]
      .filter(name => !kSignals.some(([signal]) => signal === name)).map(name => [name, name, null]);
    const cards = Elements.cards(Elements.section(page, "Signals at the cut points",
      "Of the first micro-batch of each step, at every boundary, cut or not."));
    for (const [name, title, note] of [...kSignals, ...others]) {
      const lines = known.flatMap(run => Object.keys(run.signals).filter(cut => run.signals[cut][name]).map((cut, i) => ({
        label: rowName(data, run, cut), data: Curves.points(run.signals[cut][name]), width: 1.4,
        color: several(data) ? colorOf(data, run) : () => Theme.series(i), dash: several(data) ? kDashes[i % kDashes.length] : [],
      })));
      if (!lines.length) continue;
      Curves.card({parent: cards, title, note, lines, group, format: v => Format.number(v, 3), canLog: true, log: name.startsWith("gradient")});
    }
  }

  // ---- Settings ----

  function settings(page, data) {
    const cards = Elements.cards(Elements.section(page, "Settings"));
    for (const run of data.runs) {
      const box = Elements.card(cards, {title: rowName(data, run, "job.textproto"), wide: !several(data), long: true});
      box.append(make("pre", {}, run.job.trim()));
    }
    const rows = data.runs.flatMap(run => (run.stages || []).filter(stage => stage.server && Object.keys(stage.server).length).map(stage => [
      rowName(data, run, "stage " + stage.stage), stage.device, stage.server.device_name || "–", stage.server.version || "–",
      stage.server.libtorch_version || "–", stage.server.cpu_capability || "–",
    ]));
    if (rows.length) {
      Elements.card(cards, {title: "Versions", note: "What bit-equal results depend on.", wide: true}).append(Elements.table(
        [{title: "stage"}, {title: "device", text: true}, {title: "name", text: true}, {title: "stage_server", text: true},
         {title: "LibTorch", text: true}, {title: "instructions", text: true}], rows));
    }
    if (several(data)) return;
    const figures = Object.entries(data.runs[0].figures);
    const box = Elements.card(cards, {title: "Every figure", wide: true, long: true});
    box.append(make("details", {}, make("summary", {}, figures.length + " figures, by their names in summary.json"),
      Elements.table([{title: "name"}, {title: "value"}], figures.map(([name, value]) => [name, Format.number(value, 6)]))));
  }

  return {learning, pipeline, time, links, memory, signals, settings};
})();
