// Zooming along x by dragging over a stretch. Charts of one group show the same stretch.
const Zoom = (() => {
  const kLeastDrag = 6; // pixels; less is a click

  // The stretch that is being dragged over.
  const Selection = {
    id: "zoomSelection",
    afterDraw(chart) {
      const drag = chart.$drag;
      if (!drag) return;
      const {ctx, chartArea} = chart;
      ctx.save();
      ctx.fillStyle = Theme.faded(Theme.color("forward"), 0.15);
      ctx.fillRect(
        Math.min(drag.from, drag.to),
        chartArea.top,
        Math.abs(drag.to - drag.from),
        chartArea.bottom - chartArea.top,
      );
      ctx.restore();
    },
  };

  function listen(entry, group) {
    const canvas = entry.canvas;
    const within = x => Math.min(Math.max(x, entry.chart.chartArea.left), entry.chart.chartArea.right);
    const valueAt = x => entry.chart.scales.x.getValueForPixel(x);
    canvas.addEventListener("pointerdown", event => {
      const area = entry.chart.chartArea;
      if (event.button !== 0 || event.pointerType === "touch") return;
      if (
        event.offsetX < area.left ||
        event.offsetX > area.right ||
        event.offsetY < area.top ||
        event.offsetY > area.bottom
      )
        return;
      canvas.setPointerCapture(event.pointerId);
      entry.chart.$drag = {from: event.offsetX, to: event.offsetX};
    });
    canvas.addEventListener("pointermove", event => {
      if (!entry.chart.$drag) return;
      entry.chart.$drag.to = within(event.offsetX);
      entry.chart.draw();
    });
    canvas.addEventListener("pointerup", () => {
      const drag = entry.chart.$drag;
      entry.chart.$drag = null;
      if (!drag) return;
      if (Math.abs(drag.to - drag.from) < kLeastDrag) {
        entry.chart.draw();
      } else {
        group.show(valueAt(Math.min(drag.from, drag.to)), valueAt(Math.max(drag.from, drag.to)));
      }
    });
    canvas.addEventListener("dblclick", () => group.reset());
    // Plain scrolling is the page's.
    canvas.addEventListener(
      "wheel",
      event => {
        if (!event.ctrlKey && !event.shiftKey) return;
        event.preventDefault();
        const x = entry.chart.scales.x;
        const amount = Math.abs(event.deltaY) > Math.abs(event.deltaX) ? event.deltaY : event.deltaX;
        if (event.ctrlKey) {
          group.scale(1.0015 ** amount, valueAt(within(event.offsetX)));
        } else {
          const by = ((x.max - x.min) * amount) / 800;
          group.show(x.min + by, x.max + by);
        }
      },
      {passive: false},
    );
  }

  // whole: {min, max} that is shown at first and after a reset; absent: what the data has.
  function group(whole = {min: undefined, max: undefined}) {
    const entries = [];
    const self = {
      view: whole,
      add(entry) {
        entries.push(entry);
        listen(entry, self);
      },
      apply(view) {
        self.view = view;
        for (const entry of entries) {
          Object.assign(entry.chart.options.scales.x, view);
          entry.chart.update("none");
        }
      },
      show: (min, max) => self.apply({min, max}),
      reset: () => self.apply(whole),
      setWhole(view) {
        whole = view;
        self.apply(view);
      },
      // factor < 1 shows less; around a value of x.
      scale(factor, around) {
        const x = entries[0].chart.scales.x;
        const at = around ?? (x.min + x.max) / 2;
        self.show(at - (at - x.min) * factor, at + (x.max - at) * factor);
      },
    };
    return self;
  }

  return {group, Selection};
})();
