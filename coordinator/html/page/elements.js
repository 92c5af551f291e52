// HTML elements. Text only ever becomes text: nothing of the data is read as HTML.
const Elements = (() => {
  // make("td", {class: "text"}, "a", child): null children are left out.
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) {
        element.addEventListener(name.slice(2), value);
      } else if (name === "style") {
        Object.assign(element.style, value);
      } else if (value !== null && value !== undefined) {
        element.setAttribute(name, value);
      }
    }
    for (const child of children.flat()) {
      if (child === null || child === undefined) continue;
      element.append(typeof child === "object" ? child : String(child));
    }
    return element;
  }

  function section(parent, title, note) {
    const element = make("section", {}, make("h2", {}, title), note ? make("p", {class: "note"}, note) : null);
    parent.append(element);
    return element;
  }

  function cards(parent) {
    const element = make("div", {class: "cards"});
    parent.append(element);
    return element;
  }

  // A card with a heading; what goes into it is appended by the caller. `controls`: elements beside the heading.
  // It takes half of the width, or a third, or all of it.
  function card(parent, {title, note, wide = false, third = false, long = false, controls = []}) {
    const element = make(
      "article",
      {class: "card" + (wide ? " wide" : third ? " third" : "") + (long ? " long" : "")},
      make(
        "header",
        {},
        make("h3", {}, title),
        controls.length ? make("div", {class: "controls"}, controls) : null,
        note ? make("p", {class: "note"}, note) : null,
      ),
    );
    parent.append(element);
    return element;
  }

  // A canvas of a height, in pixels, as wide as its card. `label` is what a screen reader says.
  function canvas(card, height, label) {
    const element = make("canvas", {role: "img", "aria-label": label});
    card.append(make("div", {class: "canvas", style: {height: height + "px"}}, element));
    return element;
  }

  function button(label, onclick, attributes = {}) {
    return make("button", {type: "button", onclick, ...attributes}, label);
  }

  // columns: [{title, text: left-aligned}], rows: arrays of texts or elements; {group: TITLE} spans a row.
  function table(columns, rows) {
    const kind = column => (column.text ? {class: "text"} : {});
    return make(
      "div",
      {class: "scroll"},
      make(
        "table",
        {},
        make(
          "thead",
          {},
          make(
            "tr",
            {},
            columns.map(c => make("th", kind(c), c.title)),
          ),
        ),
        make(
          "tbody",
          {},
          rows.map(row =>
            row.group !== undefined
              ? make("tr", {class: "group"}, make("td", {colspan: columns.length}, row.group))
              : make(
                  "tr",
                  {},
                  row.map((cell, i) => make("td", kind(columns[i]), cell)),
                ),
          ),
        ),
      ),
    );
  }

  // In the color of the series.
  const dot = series => make("span", {class: "dot", style: {background: "var(--series-" + (series % 8) + ")"}});

  return {make, section, cards, card, canvas, button, table, dot};
})();
