/* What the page does by itself. The preference lives here and in the address, never on the
   server; the server is asked for one point at a time, always the newest. */
(function () {
  "use strict";

  const NONE = () => window.dash_clientside.no_update;
  const set = (id, props) => window.dash_clientside.set_props(id, props);
  const element = (id) => document.getElementById(id);
  const state = { preference: null, asked: null, answered: 0, serial: 0, started: false, boxes: [] };
  const { variable, dressed, onChange } = window.lorpmanColours;
  const GIVE_UP_MS = 15000;
  const SPINNER_MS = 200;
  const ADDRESS_MS = 350;
  const SILENT = "No answer yet. Is lorpman explore still running? The page goes on asking.";

  // Preferences.

  function rounded(alpha) {
    const parts = alpha.map((w) => Math.round(Math.max(0, w) * 1e4) / 1e4);
    const largest = parts.indexOf(Math.max(...parts));
    const rest = parts.reduce((sum, w, i) => (i === largest ? sum : sum + w), 0);
    // As on the server: what rounding lost goes to the largest weight, where it matters least.
    parts[largest] = Math.round((1 - rest) * 1e4) / 1e4;
    return parts;
  }

  /* The weight of task i becomes w; the others keep their proportions. */
  function moved(alpha, i, w) {
    w = Math.min(1, Math.max(0, w));
    if (alpha.length === 2) return rounded(i === 1 ? [1 - w, w] : [w, 1 - w]);
    const others = alpha.reduce((sum, v, j) => (j === i ? sum : sum + v), 0);
    return rounded(
      alpha.map((v, j) => {
        if (j === i) return w;
        // From a corner, the others have no proportions to keep.
        return others > 1e-9 ? (v * (1 - w)) / others : (1 - w) / (alpha.length - 1);
      })
    );
  }

  function nearest(alphas, alpha) {
    let best = 0;
    let least = Infinity;
    alphas.forEach((row, place) => {
      const distance = row.reduce((sum, w, i) => sum + (w - alpha[i]) ** 2, 0);
      if (distance < least) [best, least] = [place, distance];
    });
    return best;
  }

  function even(m) {
    return rounded(Array(m).fill(1 / m));
  }

  /* What the address asks for; a part that makes no sense is left out, and named. */
  function fromAddress(runs) {
    const query = new URLSearchParams(window.location.search);
    const m = runs[0].alphas[0].length;
    const wrong = [];
    let run = runs[0];
    if (query.has("run")) {
      const known = runs.find((r) => r.key === query.get("run"));
      if (known) run = known;
      else wrong.push("run");
    }
    let alpha = even(m);
    if (query.has("alpha")) {
      const given = query.get("alpha").split(",").map(Number);
      const sum = given.reduce((total, w) => total + w, 0);
      const fits = given.length === m && given.every((w) => Number.isFinite(w) && w >= 0);
      // Every weight has four digits, so that the sum of many may be a little off.
      if (fits && Math.abs(sum - 1) < 2e-3) alpha = rounded(given);
      else wrong.push("alpha");
    }
    const bounds = {};
    for (const part of query.getAll("need")) {
      // The last one: the name of a task may hold colons too.
      const at = part.lastIndexOf(":");
      const value = Number(part.slice(at + 1));
      if (at > 0 && part.slice(at + 1) !== "" && Number.isFinite(value)) {
        bounds[part.slice(0, at)] = value;
      } else wrong.push("need");
    }
    const hidden = query.getAll("hide").filter((key) => runs.some((r) => r.key === key));
    return { run, alpha, bounds, hidden, wrong };
  }

  function start(runs, tasks) {
    const asked = fromAddress(runs);
    state.started = true;
    tasks.forEach((task, i) => {
      if (task in asked.bounds) set({ type: "bound", index: i }, { value: asked.bounds[task] });
    });
    if (asked.hidden.length) {
      const shown = runs.map((r) => r.key).filter((key) => !asked.hidden.includes(key));
      set("shown", { value: shown });
    }
    if (asked.wrong.length) {
      const parts = [...new Set(asked.wrong)].join(" and ");
      set("notice", { children: `The address had a part that cannot be read (${parts}); it was left out.` });
    }
    return asked;
  }

  function prefer(weights, place, runKey, click, flatClick, picked, found, runs, before) {
    const trigger = window.dash_clientside.callback_context.triggered_id;
    let run = runs.find((r) => r.key === (before ? before.run : runKey)) || runs[0];
    let alpha = before ? before.alpha : even(runs[0].alphas[0].length);
    const clicked = (click || flatClick || {}).points;
    if (!state.started) {
      const asked = start(runs, JSON.parse(element("weights").dataset.tasks || "[]"));
      [run, alpha] = [asked.run, asked.alpha];
    } else if (trigger && trigger.type === "weight") {
      const index = trigger.index;
      // Two tasks have one slider between them.
      const value = Number(weights[alpha.length === 2 ? 0 : index]);
      if (Number.isFinite(value)) alpha = moved(alpha, index, value);
    } else if (trigger === "place") {
      alpha = rounded(run.alphas[Math.min(run.alphas.length - 1, Math.max(0, Number(place) || 0))]);
    } else if (trigger === "run") {
      run = runs.find((r) => r.key === runKey) || run;
    } else if ((trigger === "front" || trigger === "flat") && clicked) {
      const what = clicked[0].customdata;
      if (Array.isArray(what)) {
        run = runs.find((r) => r.key === what[0]) || run;
        alpha = rounded(run.alphas[what[1]]);
      }
    } else if (trigger === "picked" && picked) {
      run = runs.find((r) => r.key === picked.run) || run;
      alpha = rounded(picked.alpha);
    } else if (trigger === "found" && found) {
      run = runs.find((r) => r.key === found.run) || run;
      alpha = rounded(found.alpha);
    }
    let at = nearest(run.alphas, alpha);
    if (run.mode !== "any") alpha = rounded(run.alphas[at]);
    const sliders = alpha.length === 2 ? [alpha[1]] : alpha;
    show(run, alpha, at);
    return [{ run: run.key, alpha }, sliders, at, run.key, null, null];
  }

  /* The controls that fit the run: sliders where any preference will do, else a row of points. */
  function show(run, alpha, at) {
    const free = run.mode === "any";
    element("weights").classList.toggle("absent", !free);
    element("places").classList.toggle("absent", free || run.alphas.length < 2);
    const range = element("place");
    if (range) range.max = run.alphas.length - 1;
    set("place", { max: run.alphas.length - 1 });
    element("place-text").textContent = `${at + 1} of ${run.alphas.length}`;
    document.querySelectorAll("[data-share]").forEach((output) => {
      output.textContent = `${(100 * alpha[Number(output.dataset.share)]).toFixed(1)}%`;
    });
    document.querySelectorAll(".end").forEach((end, i) => {
      end.dataset.share2 = `${(100 * alpha[i]).toFixed(1)}%`;
    });
  }

  /* A preference in words; of many tasks, those that matter most. */
  function described(alpha, tasks) {
    const parts = alpha.map((weight, i) => [weight, tasks[i]]);
    if (tasks.length > 6) {
      if (Math.max(...alpha) - Math.min(...alpha) < 1e-3) return "all tasks matter the same";
      parts.sort((a, b) => b[0] - a[0]).splice(4);
    }
    const text = parts.map(([w, task]) => `${task} ${Math.round(w * 1000) / 10}%`).join(", ");
    return tasks.length > 6 ? `${text}, the others less` : text;
  }

  // Asking: one question at a time, the newest one; a spinner where the answer takes long.

  function ask() {
    const waiting = state.asked && state.answered < state.asked.serial;
    // Its answer calls follow, which asks for whatever is newest by then.
    if (waiting) return;
    state.serial += 1;
    state.asked = { serial: state.serial, text: JSON.stringify(state.preference) };
    set("asked", { data: { ...state.preference, serial: state.serial } });
    const serial = state.serial;
    setTimeout(() => {
      if (state.answered < serial) document.body.classList.add("waiting");
    }, SPINNER_MS);
    setTimeout(() => {
      if (state.answered >= serial || state.asked.serial !== serial) return;
      state.silent = true;
      set("notice", { children: SILENT });
      // Asked again, since an answer may be lost with its connection.
      state.asked = null;
      ask();
    }, GIVE_UP_MS);
  }

  function heard(now) {
    state.answered = now.serial;
    document.body.classList.remove("waiting");
    if (state.silent) set("notice", { children: "" });
    state.silent = false;
  }

  /* The address follows, but not at every step of a drag: browsers limit how often it may change. */
  function remember(address) {
    state.address = address;
    if (state.remembering) return;
    const since = performance.now() - (state.remembered || -Infinity);
    state.remembering = setTimeout(() => {
      [state.remembering, state.remembered] = [null, performance.now()];
      if (state.address !== window.location.pathname + window.location.search) {
        window.history.replaceState(null, "", state.address);
      }
    }, Math.max(0, ADDRESS_MS - since));
  }

  function follow(preference, now, shown, bounds, runs, ends) {
    if (!preference) return [NONE(), NONE(), NONE(), NONE()];
    [state.preference, state.runs] = [preference, runs];
    if (now && now.serial > state.answered) heard(now);
    if (!state.asked || state.asked.text !== JSON.stringify(preference)) ask();
    element("preference-card").setAttribute("aria-busy", state.answered < state.serial);
    const run = runs.find((r) => r.key === preference.run);
    drawTriangle(preference.alpha, run, ends.tasks);
    const query = new URLSearchParams();
    if (runs.length > 1) query.set("run", preference.run);
    query.set("alpha", preference.alpha.join(","));
    ends.tasks.forEach((task, i) => {
      if (bounds[i] !== null && bounds[i] !== undefined && bounds[i] !== "") {
        query.append("need", `${task}:${bounds[i]}`);
      }
    });
    runs.filter((r) => !(shown || []).includes(r.key)).forEach((r) => query.append("hide", r.key));
    // Addresses may hold both, and people read them more easily so.
    const text = query.toString().replace(/%2C/g, ",").replace(/%3A/g, ":");
    const address = `${window.location.pathname}?${text}`;
    remember(address);
    const where = now ? `You are here: ${described(now.alpha, ends.tasks)}.` : "";
    return [address, window.location.origin + address, run.moving, where];
  }

  // Drawing.

  /* Which lines of parallel axes pass the brushes: on every axis that has any, one of them.
     Brushes are boxes, not chosen points: those change with every drawing. */
  function keeper(trace, boxes) {
    const axes = {};
    for (const box of boxes) {
      const [left, right] = [Math.min(box.x0, box.x1), Math.max(box.x0, box.x1)];
      for (let axis = Math.ceil(left); axis <= right; axis += 1) {
        (axes[axis] = axes[axis] || []).push([Math.min(box.y0, box.y1), Math.max(box.y0, box.y1)]);
      }
    }
    const missing = new Set();
    trace.x.forEach((axis, i) => {
      if (axis === null || !(axis in axes)) return;
      const inside = axes[axis].some(([low, high]) => trace.y[i] >= low && trace.y[i] <= high);
      if (!inside) missing.add(trace.customdata[i].join("|"));
    });
    return Object.keys(axes).length ? (what) => !missing.has(what.join("|")) : null;
  }

  function brushed(trace, boxes) {
    const keep = boxes && boxes.length && trace.customdata ? keeper(trace, boxes) : null;
    if (!keep) return [trace];
    const split = (wanted) => {
      const part = { ...trace, x: [], y: [], customdata: [], text: [] };
      trace.customdata.forEach((what, i) => {
        if (keep(what) !== wanted) return;
        for (const key of ["x", "y", "customdata", "text"]) part[key].push(trace[key][i]);
      });
      return part;
    };
    return [
      { ...split(false), opacity: 0.07, hoverinfo: "skip", hovertemplate: null },
      { ...split(true), opacity: 1, line: { ...trace.line, width: 2 } },
    ];
  }

  function brush(boxes) {
    state.boxes = boxes;
    set("brush", { data: boxes });
  }

  /* Hear from the plot itself what Dash does not tell. */
  function listen(to) {
    const plot = document.querySelector("#front .js-plotly-plot");
    // Dash draws the plot only some time after the page.
    if (!plot || !plot.on) return void setTimeout(listen, 200, to);
    if (state.listening === plot) return undefined;
    state.listening = plot;
    return to(plot);
  }

  /* Brushes, and only between the user's press and release: a redraw also selects and deselects. */
  function brushes(plot) {
    let pressed = null;
    plot.addEventListener("mousedown", (event) => {
      pressed = { more: event.shiftKey };
      if (event.detail === 2) brush([]);
    }, true);
    plot.on("plotly_selected", (event) => {
      if (!pressed || !event || !event.range) return;
      const { x, y } = event.range;
      const box = { x0: x[0], x1: x[1], y0: y[0], y1: y[1] };
      brush(pressed.more ? state.boxes.concat(box) : [box]);
      pressed = null;
    });
  }

  /* Clicks on a surface. Plotly reports one only if it draws while the button is down, and misses
     short ones; so a click counts wherever the pointer has found a point. */
  function clicks(plot) {
    let found = null;
    let from = [0, 0];
    plot.on("plotly_hover", (event) => { found = event.points[0].customdata; });
    plot.on("plotly_unhover", () => { found = null; });
    plot.addEventListener("pointerdown", (event) => { from = [event.clientX, event.clientY]; }, true);
    plot.addEventListener("click", (event) => {
      const turned = Math.hypot(event.clientX - from[0], event.clientY - from[1]) > 4;
      const run = Array.isArray(found) && state.runs.find((r) => r.key === found[0]);
      if (run && !turned) pick(rounded(run.alphas[found[1]]), run.key);
    }, true);
  }

  function marker(size) {
    return {
      symbol: "diamond", size, color: variable("--here"),
      line: { color: variable("--card"), width: 2 },
    };
  }

  function here(now, ends, axes) {
    const meta = { here: { run: now.run, alpha: now.alpha } };
    const base = { hoverinfo: "skip", mode: "markers", name: "you", meta };
    if (now.scores.length === 2) {
      return [{ ...base, type: "scatter", x: [now.scores[0]], y: [now.scores[1]], marker: marker(20) }];
    }
    if (now.scores.length === 3 && !axes) {
      const [x, y, z] = now.scores.map((s) => [s]);
      return [{ ...base, type: "scatter3d", x, y, z, marker: marker(9) }];
    }
    if (axes) {
      return [[0, 1, ""], [0, 2, "2"], [1, 2, "3"]].map(([x, y, tail]) => ({
        ...base, type: "scatter", x: [now.scores[x]], y: [now.scores[y]], marker: marker(15),
        xaxis: `x${tail}`, yaxis: `y${tail}`,
      }));
    }
    const height = now.scores.map((s, i) => {
      const part = (s - ends.worst[i]) / (ends.best[i] - ends.worst[i]);
      // A score on few samples may lie beyond those of the stored points.
      return Math.min(1.05, Math.max(-0.05, part));
    });
    const line = { color: variable("--here"), width: 3.5 };
    return [{
      ...base, type: "scatter", mode: "lines+markers", x: height.map((_, i) => i), y: height,
      line, marker: marker(11),
    }];
  }

  /* Axes that stand still while the point moves between the others: plotly's own make room for
     its size, wherever it is. */
  function still({ xaxis, yaxis }, data) {
    const range = (key) => {
      const values = data.flatMap((trace) => trace[key]);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const room = 0.07 * (high - low) || 0.05 * Math.abs(high) || 1;
      return { range: [low - room, high + room] };
    };
    return { xaxis: { ...xaxis, ...range("x") }, yaxis: { ...yaxis, ...range("y") } };
  }

  function draw(drawn, flat, now, shown, curves, boxes, look, ends) {
    const seen = (trace) => !shown || shown.includes(trace.meta.run);
    const many = ends.tasks.length > 3;
    if (ends.tasks.length >= 3) listen(many ? brushes : clicks);
    const build = (figure, axes) => {
      if (!figure) return { data: [], layout: {} };
      let data = figure.data.filter(seen);
      if (many) data = data.flatMap((trace) => brushed(trace, boxes));
      if (!axes) data = (curves || []).filter(seen).concat(data);
      if (now) data = data.concat(here(now, ends, axes));
      const selections = (boxes || []).map((box) => ({ type: "rect", ...box }));
      const more = many ? { selections } : ends.tasks.length === 2 ? still(figure.layout, data) : {};
      return dressed({ data, layout: { ...figure.layout, ...more } });
    };
    return [build(drawn, false), build(flat, true)];
  }

  function dress(look, figures) {
    return figures.map(dressed);
  }

  // The triangle of three tasks: drag in it, or use the arrow keys.

  const SVG = "http://www.w3.org/2000/svg";
  const CORNERS = [[20, 186], [220, 186], [120, 14]];

  function place(alpha) {
    return [0, 1].map((k) => alpha.reduce((sum, w, i) => sum + w * CORNERS[i][k], 0));
  }

  function weightsAt(x, y) {
    const [[x0, y0], [x1, y1], [x2, y2]] = CORNERS;
    const area = (y1 - y2) * (x0 - x2) + (x2 - x1) * (y0 - y2);
    const a = ((y1 - y2) * (x - x2) + (x2 - x1) * (y - y2)) / area;
    const b = ((y2 - y0) * (x - x2) + (x0 - x2) * (y - y2)) / area;
    // Outside of the triangle a weight is negative; the nearest that makes sense is zero.
    const parts = [a, b, 1 - a - b].map((w) => Math.max(0, w));
    const sum = parts.reduce((total, w) => total + w, 0);
    return rounded(parts.map((w) => w / sum));
  }

  function make(kind, attributes, parent) {
    const node = document.createElementNS(SVG, kind);
    Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value));
    parent.appendChild(node);
    return node;
  }

  function pick(alpha, run = state.preference.run) {
    // With the time, so that every pick is a change, also to where the point stands already.
    set("picked", { data: { run, alpha, at: performance.now() } });
  }

  function buildTriangle(box, run, tasks) {
    const svg = make("svg", { viewBox: "0 0 240 216", tabindex: "0", role: "application" }, box);
    svg.setAttribute("aria-label", "Preference between three tasks; arrow keys move it");
    make("polygon", { points: CORNERS.map((c) => c.join(",")).join(" "), class: "plane" }, svg);
    for (const row of run.alphas) {
      const [cx, cy] = place(row);
      make("circle", { cx, cy, r: 1.8, class: "lattice" }, svg);
    }
    const anchors = ["start", "end", "middle"];
    tasks.forEach((task, i) => {
      const [x, y] = CORNERS[i];
      const at = { x: i === 0 ? 4 : i === 1 ? 236 : x, y: i === 2 ? 9 : y + 18 };
      make("text", { ...at, "text-anchor": anchors[i] }, svg).textContent = task;
    });
    make("circle", { r: 8, class: "handle" }, svg);
    const drag = (event) => {
      const point = new DOMPoint(event.clientX, event.clientY);
      const at = point.matrixTransform(svg.getScreenCTM().inverse());
      pick(weightsAt(at.x, at.y));
    };
    svg.addEventListener("pointerdown", (event) => {
      // So that a drag goes on outside of the triangle.
      svg.setPointerCapture(event.pointerId);
      drag(event);
    });
    svg.addEventListener("pointermove", (event) => {
      if (svg.hasPointerCapture(event.pointerId)) drag(event);
    });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-4, 0], ArrowRight: [4, 0], ArrowUp: [0, -4], ArrowDown: [0, 4] };
      if (!(event.key in step)) return;
      event.preventDefault();
      const [x, y] = place(state.preference.alpha);
      pick(weightsAt(x + step[event.key][0], y + step[event.key][1]));
    });
    return svg;
  }

  function drawTriangle(alpha, run, tasks) {
    const box = element("ternary");
    if (!box) return;
    const svg = box.querySelector("svg") || buildTriangle(box, run, tasks);
    const [cx, cy] = place(alpha);
    const handle = svg.querySelector(".handle");
    handle.setAttribute("cx", cx);
    handle.setAttribute("cy", cy);
  }

  // Buttons.

  async function take(button) {
    const said = element("taken");
    const format = button.dataset.format;
    const query = new URLSearchParams({
      run: state.preference.run, alpha: state.preference.alpha.join(","), format,
    });
    button.disabled = true;
    said.textContent = `Writing and checking model.${format} ...`;
    try {
      const answer = await fetch(`export?${query}`);
      if (!answer.ok) throw new Error(await answer.text());
      const content = await answer.blob();
      const link = document.createElement("a");
      link.href = URL.createObjectURL(content);
      link.download = `${document.body.dataset.problem || "model"}-${format}.zip`;
      const name = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") || "");
      if (name) link.download = name[1];
      link.click();
      // Not at once: browsers read it only after the click.
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
      said.textContent = `Saved as ${link.download} (${Math.ceil(content.size / 1000)} kB).`;
    } catch (error) {
      said.textContent = `That did not work: ${error.message}`;
    } finally {
      button.disabled = false;
    }
  }

  async function copy(button) {
    const text = element(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch (error) {
      // Browsers give the clipboard only to https and to this machine: elsewhere people copy.
      const range = document.createRange();
      range.selectNodeContents(element(button.dataset.copy));
      window.getSelection().removeAllRanges();
      window.getSelection().addRange(range);
      button.textContent = "selected";
    }
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest ? event.target.closest("button") : null;
    if (!button) return;
    if (button.dataset.format) take(button);
    else if (button.dataset.copy) copy(button);
    else if (button.id === "unbrush") brush([]);
    else if (button.id === "even" && state.preference) pick(even(state.preference.alpha.length));
    else if (button.dataset.place) pick(JSON.parse(button.dataset.alpha), button.dataset.run);
  });

  onChange(() => set("look", { data: performance.now() }));

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    lorpman: { prefer, follow, draw, dress },
  });
})();
