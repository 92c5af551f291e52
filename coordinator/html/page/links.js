// Bytes at the cuts against uncompressed ones, and what the trace says of transfers.
const Links = (() => {
  const {rowName} = Runs;

  const directionText = b => (b.direction === "activations" ? "activations ↓" : "gradients ↑");

  function againstFp16(times) {
    if (times > 1.05) return Format.number(times, 3) + "× smaller than fp16";
    return times > 0.95 ? "as large as fp16" : Format.number(1 / times, 3) + "× larger than fp16";
  }

  function draw(page, data) {
    const cut = data.runs.filter(run => run.boundaries);
    if (!cut.length) return;
    const cards = Elements.cards(
      Elements.section(
        page,
        "Links",
        "Bytes that cross each cut in a step, against the same activation uncompressed. Metadata is all of a message " +
          "that is not payload.",
      ),
    );
    const rows = cut.flatMap(run =>
      run.boundaries.map(b => ({
        run,
        b,
        name: rowName(data, run, b.cut_point + " " + directionText(b)),
        sent: b.payload_bytes + b.metadata_bytes,
        step: run.figures.training_seconds / run.figures.steps,
      })),
    );
    const rest = row => Math.max(0, row.b.uncompressed_bytes.fp16 - row.sent);
    Bars.stacked({
      parent: cards,
      title: "Bytes a step",
      wide: true,
      format: Format.bytes,
      rows: rows.map(row => row.name),
      parts: [
        {label: "payload", color: () => Theme.color("forward"), values: rows.map(row => row.b.payload_bytes)},
        {label: "metadata", color: () => Theme.color("metadata"), values: rows.map(row => row.b.metadata_bytes)},
        {label: "not sent: rest of fp16", color: () => Theme.color("reference"), values: rows.map(rest)},
      ],
      ends: rows.map(row => againstFp16(row.b.uncompressed_bytes.fp16 / row.sent)),
    });
    Elements.card(cards, {title: "By cut and direction", wide: true}).append(
      Elements.table(
        [
          {title: "cut after"},
          {title: "direction", text: true},
          {title: "codec", text: true},
          {title: "r"},
          {title: "payload"},
          {title: "metadata"},
          {title: "as fp16"},
          {title: "as fp32"},
          {title: "vs fp16"},
          {title: "vs fp32"},
          {title: "mean load"},
        ],
        rows.map(({run, b, sent, step}) => [
          rowName(data, run, b.cut_point),
          b.direction,
          b.codec,
          Format.number(b.ratio),
          Format.bytes(b.payload_bytes),
          Format.bytes(b.metadata_bytes),
          Format.bytes(b.uncompressed_bytes.fp16),
          Format.bytes(b.uncompressed_bytes.fp32),
          Format.number(b.uncompressed_bytes.fp16 / sent, 3) + "×",
          Format.number(b.uncompressed_bytes.fp32 / sent, 3) + "×",
          Format.bitsPerSecond((8 * sent) / step),
        ]),
      ),
    );
    const traced = data.runs.filter(run => run.links);
    if (!traced.length) return;
    Elements.card(cards, {
      title: "Transfers, as traced",
      wide: true,
      note:
        "Medians over the tensors of the traced steps. Sending: until the connection has taken a tensor; on its way: " +
        "from the beginning of its sending to its arrival.",
    }).append(
      Elements.table(
        [{title: "link"}, {title: "tensors"}, {title: "bytes a tensor"}, {title: "sending"}, {title: "on its way"}],
        traced.flatMap(run =>
          run.links.map(link => [
            rowName(data, run, "stage " + link.from + " → stage " + link.to),
            Format.count(link.tensors),
            Format.bytes(link.bytes / link.tensors),
            Format.seconds(link.send_us / 1e6),
            link.transit_us > 0 ? Format.seconds(link.transit_us / 1e6) : "–",
          ]),
        ),
      ),
    );
  }

  return {draw};
})();
