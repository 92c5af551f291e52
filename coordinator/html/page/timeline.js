// The pipeline's timeline: what each stage, and each direction of its links, did in a few steps.
const Timeline = (() => {
  const kLane = 24; // pixels
  const kKinds = [
    ["forward", "forward"],
    ["backward", "backward"],
    ["wait", "waiting for a tensor"],
    ["send", "sending"],
    ["receive", "receiving"],
    ["finish", "norms, checks"],
    ["commit", "optimizer step"],
  ];
  // By TraceLane: sends to, or receives from, the next stage (down) or the one before (up).
  const kLanes = [null, {to: true, by: 1}, {to: false, by: 1}, {to: true, by: -1}, {to: false, by: -1}];

  function laneText(stage, lane, stages) {
    if (lane === 0) return "stage " + stage;
    const neighbour = stage + kLanes[lane].by;
    const name = neighbour < 0 || neighbour >= stages ? "coordinator" : "stage " + neighbour;
    return (kLanes[lane].to ? "to " : "from ") + name;
  }

  function parse(timeline) {
    const spans = timeline.spans.map(([stage, lane, category, name, step, microBatch, start, duration, bytes]) => ({
      stage,
      lane,
      category,
      name,
      step,
      microBatch,
      start,
      duration,
      bytes,
    }));
    const keys = [...new Set(spans.map(span => span.stage * 8 + span.lane))].sort((a, b) => a - b);
    return {spans, lanes: keys.map(key => ({stage: key >> 3, lane: key & 7}))};
  }

  // Of each bar that is wide enough its name; around those of the micro-batch under the pointer a frame; lines
  // between stages.
  const Marks = {
    id: "timelineMarks",
    beforeDatasetsDraw(chart, args, options) {
      const {ctx, chartArea, scales} = chart;
      ctx.save();
      ctx.strokeStyle = Theme.color("line");
      options.lanes.forEach((lane, i) => {
        if (i === 0 || lane.stage === options.lanes[i - 1].stage) return;
        const y = Math.round((scales.y.getPixelForValue(i) + scales.y.getPixelForValue(i - 1)) / 2) + 0.5;
        ctx.beginPath();
        ctx.moveTo(0, y);
        ctx.lineTo(chartArea.right, y);
        ctx.stroke();
      });
      ctx.restore();
    },
    afterDatasetsDraw(chart) {
      const {ctx, chartArea} = chart;
      const active = chart.getActiveElements()[0];
      const chosen = active && chart.data.datasets[active.datasetIndex].data[active.index].span;
      ctx.save();
      ctx.beginPath();
      ctx.rect(chartArea.left, chartArea.top, chartArea.right - chartArea.left, chartArea.bottom - chartArea.top);
      ctx.clip();
      ctx.font = "10.5px " + Chart.defaults.font.family;
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      chart.data.datasets.forEach((dataset, d) => {
        if (!chart.isDatasetVisible(d)) return;
        chart.getDatasetMeta(d).data.forEach((bar, i) => {
          const {span} = dataset.data[i];
          const left = Math.max(Math.min(bar.base, bar.x), chartArea.left);
          const right = Math.min(Math.max(bar.base, bar.x), chartArea.right);
          if (right < left) return;
          if (["forward", "backward"].includes(span.category) && ctx.measureText(span.name).width + 6 < right - left) {
            ctx.fillStyle = Theme.color("card");
            ctx.fillText(span.name, (left + right) / 2, bar.y + 0.5);
          }
          if (chosen && chosen.microBatch >= 0 && span.microBatch === chosen.microBatch && span.step === chosen.step) {
            ctx.strokeStyle = Theme.color("ink");
            ctx.lineWidth = 1.5;
            ctx.strokeRect(left, bar.y - bar.height / 2, Math.max(right - left, 1.5), bar.height);
          }
        });
      });
      ctx.restore();
    },
  };

  function tooltip(timeline) {
    return {
      mode: "nearest",
      intersect: true,
      position: "nearest",
      callbacks: {
        title: items =>
          items.map(
            ({raw: {span}}) =>
              laneText(span.stage, span.lane, timeline.stages) + (span.lane ? " at stage " + span.stage : ""),
          ),
        label: ({dataset, raw: {span}}) =>
          " " + (span.lane ? dataset.label : span.name) + "  " + Format.seconds(span.duration / 1e6),
        footer: items =>
          items.map(({raw: {span}}) => [
            "step " + span.step + (span.microBatch >= 0 ? ", micro-batch " + span.microBatch : ""),
            ...(span.bytes > 0 ? [Format.bytes(span.bytes)] : []),
          ])[0],
      },
    };
  }

  // {parent, run, title}
  function card({parent, run, title}) {
    const timeline = run.timeline;
    const {spans, lanes} = parse(timeline);
    const kinds = kKinds.filter(([category]) => spans.some(span => span.category === category));
    const extent = step => ({min: step.start / 1e3, max: (step.start + step.duration) / 1e3});
    const views = timeline.steps.map(step => ({label: "step " + step.step, view: extent(step), step: step.step}));
    if (views.length > 1)
      views.push({label: "all " + views.length, view: {min: views[0].view.min, max: views[views.length - 1].view.max}});
    const first = views.find(view => view.step === timeline.typical) || views[0];
    // Times are told from the start of what is shown.
    let shown = first;
    let withLinks = true;
    let entry = null;
    const span = view => ({min: 0, max: view.view.max - view.view.min});
    const group = Zoom.group(span(first));
    const choices = views.map(view =>
      Elements.button(
        view.label,
        () => {
          shown = view;
          choices.forEach((choice, i) => choice.setAttribute("aria-pressed", views[i] === shown));
          group.setWhole(span(view));
          redraw();
        },
        {"aria-pressed": view === first},
      ),
    );
    const linksToggle = Elements.button(
      "links",
      () => {
        withLinks = !withLinks;
        linksToggle.setAttribute("aria-pressed", withLinks);
        redraw();
      },
      {"aria-pressed": true, title: "what crosses the links"},
    );
    const controls = [
      ...choices,
      linksToggle,
      Elements.button("−", () => group.scale(1.6), {title: "show more"}),
      Elements.button("+", () => group.scale(1 / 1.6), {title: "show less"}),
      Elements.button("reset", () => group.reset()),
    ];
    const box = Elements.card(parent, {
      title,
      wide: true,
      controls,
      note:
        "Color is work, grey is idle; F and B are forward and backward of a micro-batch. Drag to zoom, double-click " +
        "to go back, Ctrl and wheel zooms, Shift and wheel moves. Pointing at a bar frames its micro-batch wherever " +
        "it goes.",
    });
    // Inputs come a step ahead: in the step itself their lanes are empty.
    const isShown = ({start, duration}) => start / 1e3 < shown.view.max && (start + duration) / 1e3 > shown.view.min;
    const used = ({stage, lane}) => spans.some(s => s.stage === stage && s.lane === lane && isShown(s));
    const lanesShown = () => lanes.filter(lane => lane.lane === 0 || (withLinks && used(lane)));
    const height = () => lanesShown().length * kLane + 92;
    const redraw = () => {
      canvas.parentElement.style.height = height() + "px";
      Charts.draw(entry);
    };
    const canvas = Elements.canvas(box, height(), "Timeline of the pipeline");
    entry = Charts.add(
      canvas,
      () => configuration({timeline, spans, kinds, lanes: lanesShown(), origin: shown.view.min, view: group.view}),
      group,
    );
    return entry;
  }

  function configuration({timeline, spans, kinds, lanes, origin, view}) {
    const index = new Map(lanes.map((lane, i) => [lane.stage * 8 + lane.lane, i]));
    const drawn = spans.filter(span => index.has(span.stage * 8 + span.lane));
    const steps = timeline.steps.map(step => ({
      x: step.start / 1e3 - origin,
      color: Theme.color("faint"),
      dash: [4, 4],
      label: "step " + step.step,
      above: true,
    }));
    return {
      type: "bar",
      plugins: [Marks, VerticalLines, Zoom.Selection],
      data: {
        labels: lanes.map((lane, i) => i),
        datasets: kinds.map(([category, label]) => ({
          label,
          backgroundColor: Theme.color(category),
          grouped: false,
          barPercentage: 0.86,
          categoryPercentage: 1,
          minBarLength: 1,
          data: drawn
            .filter(span => span.category === category)
            .map(span => ({
              x: [span.start / 1e3 - origin, (span.start + span.duration) / 1e3 - origin],
              y: index.get(span.stage * 8 + span.lane),
              span,
            })),
        })),
      },
      options: {
        indexAxis: "y",
        layout: {padding: {top: 8, right: 10}},
        scales: {
          x: Charts.axis("ms", value => Format.number(value), {type: "linear", ...view}),
          y: {
            grid: {display: false, drawBorder: false},
            ticks: {
              autoSkip: false,
              padding: 8,
              crossAlign: "far",
              callback: i => (lanes[i].lane ? "  " : "") + laneText(lanes[i].stage, lanes[i].lane, timeline.stages),
              color: context =>
                lanes[context.index] && lanes[context.index].lane ? Theme.color("faint") : Theme.color("ink"),
              font: context => ({weight: lanes[context.index] && lanes[context.index].lane ? "normal" : "600"}),
            },
          },
        },
        plugins: {timelineMarks: {lanes}, verticalLines: {lines: steps}, tooltip: tooltip(timeline)},
      },
    };
  }

  return {card};
})();
