/* The colours of the page, light or dark, for figures. The page and the report share this. */
(function () {
  "use strict";

  function variable(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  /* The colours of the page, light or dark, on a figure. */
  function dressed(figure) {
    const [text, line, card] = ["--text", "--line", "--card"].map(variable);
    const layout = { ...figure.layout };
    layout.font = { ...layout.font, color: text };
    layout.hoverlabel = { bgcolor: card, bordercolor: line, font: { color: text }, align: "left" };
    const axis = (a) => ({
      ...a, color: text, gridcolor: line, linecolor: line, zerolinecolor: line, tickcolor: line,
    });
    for (const key of Object.keys(layout)) {
      if (/^[xy]axis\d*$/.test(key)) layout[key] = axis(layout[key]);
      if (key === "scene") {
        const scene = { ...layout.scene };
        for (const name of ["xaxis", "yaxis", "zaxis"]) {
          scene[name] = { ...axis(scene[name] || {}), showbackground: false };
        }
        layout.scene = scene;
      }
    }
    return { data: figure.data, layout };
  }

  window.lorpmanColours = { variable, dressed };
})();
