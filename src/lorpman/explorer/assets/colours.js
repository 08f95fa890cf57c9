/* The colours of the page, light or dark, and its width, for figures. The page and the report
   share this. */
(function () {
  "use strict";

  function variable(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  const narrow = window.matchMedia("(max-width: 620px)");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  /* On a narrow screen, plots that stand side by side go below one another, and the names of many
     axes stand upright; a surface steps back, so that the names of its axes stay in sight. */
  function fitted(layout) {
    if (!narrow.matches) return { ...layout };
    const { grid, scene, xaxis } = layout;
    if (scene) {
      const { x, y, z } = scene.camera.eye;
      const eye = { x: 1.25 * x, y: 1.25 * y, z: 1.25 * z };
      return { ...layout, scene: { ...scene, camera: { ...scene.camera, eye } } };
    }
    if (grid) return { ...layout, grid: { ...grid, rows: grid.columns, columns: grid.rows } };
    if (!xaxis || !xaxis.tickvals || xaxis.tickvals.length <= 8) return { ...layout };
    return { ...layout, xaxis: { ...xaxis, tickangle: -90, tickfont: { size: 9 } } };
  }

  function onChange(redraw) {
    for (const one of [narrow, dark]) one.addEventListener("change", redraw);
  }

  /* The colours of the page, light or dark, on a figure. */
  function dressed(figure) {
    const [text, line, card] = ["--text", "--line", "--card"].map(variable);
    const layout = fitted(figure.layout);
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

  window.lorpmanColours = { variable, dressed, onChange };
})();
