// The top of the report: what was run, and what came out, at a glance.
const Header = (() => {
  const {make} = Elements;
  const kNamed = 6; // as many runs are named under the title

  // [{label, value, unit, more}] of a run: what is not known is not there.
  function tiles(run) {
    const f = run.figures;
    const out = [];
    const add = (label, value, unit, more) => {
      if (value) out.push({label, value, unit, more});
    };
    const trained = f.final_loss !== undefined ? "training " + Format.number(f.final_loss) : "";
    if (run.is_text) {
      add("bits per byte", Format.number(f.bits_per_byte), "", "perplexity " + Format.number(f.perplexity));
      add("test loss", Format.number(f.validation_loss), "", trained);
      add("tokens a second", Format.count(f.tokens_per_second), "", speedNote(f));
    } else {
      if (f.top1 !== undefined) add("top-1 accuracy", (100 * f.top1).toFixed(2), "%", "on the test set");
      if (f.validation_loss !== undefined) add("test loss", Format.number(f.validation_loss), "", trained);
      else add("training loss", Format.number(f.final_loss), "", "of the last step");
      add("samples a second", Format.number(f.samples_per_second), "", speedNote(f));
    }
    if (f.bytes_per_step > 0) {
      add("compression", Format.number(f.fp16_bytes_per_step / f.bytes_per_step, 3) + "×", "", "against fp16");
      add("bytes a step", Format.bytes(f.bytes_per_step), "", "at the cuts");
    }
    add(
      "training time",
      Format.seconds(f.training_seconds),
      "",
      Format.plural(f.steps, "step") + (f.skipped_steps > 0 ? ", " + Format.count(f.skipped_steps) + " skipped" : ""),
    );
    add("parameters", Format.about(f.parameters), "", Format.plural(run.stages ? run.stages.length : 1, "stage"));
    return out;
  }

  const speedNote = f => (f.step_seconds_median !== undefined ? Format.seconds(f.step_seconds_median) + " a step" : "");

  // One or two sentences: where the time went, what the cuts saved.
  function glance(run) {
    const f = run.figures;
    const stages = run.stages ? run.stages.length : 1;
    const sentences = [];
    if (stages > 1) {
      let text = "The stages computed " + Format.percent(f.utilization, 0) + " of the time";
      const idle = [];
      if (f.bubble_share !== undefined)
        idle.push("the schedule itself leaves " + Format.percent(f.bubble_share, 0) + " idle");
      if (f.communication_share_exposed !== undefined) {
        idle.push(Format.percent(f.communication_share_exposed, 0) + " went to waiting for links");
      }
      if (idle.length) text += "; " + idle.join(", and ");
      sentences.push(text + ".");
      const loads = run.stages.map(stage => stage.forward_seconds + stage.backward_seconds);
      const most = loads.indexOf(Math.max(...loads));
      const mean = loads.reduce((sum, load) => sum + load, 0) / loads.length;
      if (mean > 0 && loads[most] > 1.15 * mean) {
        sentences.push(
          "Stage " +
            run.stages[most].stage +
            " has " +
            Number((loads[most] / mean).toFixed(2)) +
            " times the mean work of a stage: it sets the pace.",
        );
      }
    }
    if (f.skipped_steps > 0) {
      sentences.push(
        Format.plural(f.skipped_steps, "step") +
          (f.skipped_steps === 1 ? " was" : " were") +
          " skipped because a value was not finite.",
      );
    }
    return sentences.join(" ");
  }

  function subtitle(data) {
    if (data.runs.length > kNamed) return Format.plural(data.comparison.arms.length, "job");
    if (data.runs.length > 1) return data.runs.map(run => run.name).join(" · ");
    const run = data.runs[0];
    return [
      data.title !== run.job_name ? run.job_name : null,
      run.path,
      run.started ? Format.date(run.started) : null,
      run.stages
        ? Format.plural(run.stages.length, "stage") +
          " on " +
          [...new Set(run.stages.map(s => (s.server && s.server.device_name) || s.device))].join(", ")
        : null,
      run.version ? "resbm " + run.version : null,
    ]
      .filter(Boolean)
      .join(" · ");
  }

  function draw(page, data) {
    const theme = Elements.button(
      "theme: auto",
      () => {
        Theme.next();
        theme.textContent = "theme: " + Theme.mode();
      },
      {class: "theme", title: "auto, light, dark"},
    );
    page.append(
      make(
        "div",
        {class: "top"},
        make("div", {}, make("h1", {}, data.title), make("p", {class: "subtitle"}, subtitle(data))),
        theme,
      ),
    );
    if (data.runs.length > 1) return;
    const run = data.runs[0];
    const text = glance(run);
    if (text) page.append(make("p", {class: "glance"}, text));
    page.append(
      make(
        "div",
        {class: "tiles"},
        tiles(run).map(tile =>
          make(
            "div",
            {class: "tile"},
            make("div", {class: "label"}, tile.label),
            make("div", {class: "value"}, tile.value, tile.unit ? make("small", {}, tile.unit) : null),
            make("div", {class: "more"}, tile.more || "\u00a0"),
          ),
        ),
      ),
    );
  }

  return {draw};
})();
