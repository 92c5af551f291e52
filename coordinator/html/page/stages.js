// Memory, parameters and times of each stage.
const Stages = (() => {
  const {rowName} = Runs;

  function draw(page, data) {
    const staged = data.runs.filter(run => run.stages);
    if (!staged.length) return;
    const cards = Elements.cards(Elements.section(page, "Stages", "Memory at the step that took most of it."));
    const rows = staged.flatMap(run =>
      run.stages.map(stage => ({
        run,
        stage,
        memory: stage.peak_memory_bytes,
        name: rowName(data, run, "stage " + stage.stage),
      })),
    );
    const measured = rows.filter(row => row.memory && row.memory.total > 0);
    if (measured.length) {
      const part = (label, color, name) => ({
        label,
        color: () => Theme.color(color),
        values: measured.map(row => row.memory[name]),
      });
      Bars.stacked({
        parent: cards,
        title: "Peak memory",
        wide: true,
        format: Format.bytes,
        rows: measured.map(row => row.name),
        parts: [
          part("weights", "forward", "weights"),
          part("optimizer", "commit", "optimizer"),
          part("activations", "backward", "activations"),
          part("buffers", "send", "buffers"),
        ],
        ends: measured.map(row => Format.bytes(row.memory.total)),
      });
    }
    const server = row => row.stage.server || {};
    const columns = [
      ["stage", row => row.name],
      ["device", row => server(row).device_name || row.stage.device, true],
      ["parameters", row => Format.count(row.stage.parameters)],
      ["forward", row => Format.seconds(row.stage.forward_seconds)],
      ["backward", row => Format.seconds(row.stage.backward_seconds)],
      ["waiting", row => Format.seconds(row.stage.waiting_up_seconds + row.stage.waiting_down_seconds)],
      ["optimizer", row => Format.seconds(row.stage.commit_seconds)],
      ["computing", row => Format.percent(row.stage.utilization)],
      ["GPU busy", row => Format.percent(row.stage.gpu_utilization)],
      ["peak memory", row => (row.memory && row.memory.total > 0 ? Format.bytes(row.memory.total) : "")],
    ].filter(([, text]) => rows.some(row => text(row)));
    Elements.card(cards, {title: "Figures, a step", wide: true}).append(
      Elements.table(
        columns.map(([title, , text]) => ({title, text})),
        rows.map(row => columns.map(([, text]) => text(row) || "–")),
      ),
    );
  }

  return {draw};
})();
