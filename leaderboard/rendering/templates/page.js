"use strict";
(() => {
  const all = (css, within = document) => [...within.querySelectorAll(css)];
  const element = (name, facts, ...inside) => {
    const made = Object.assign(document.createElement(name), facts);
    made.append(...inside);
    return made;
  };
  document.documentElement.classList.add("js");

  // One phase is shown at a time. What a reader has chosen is part of the address: #phase?team=…&with=…&sort=…&find=…
  const sections = all(".phase"), links = all(".phases a");
  const fallback = document.getElementById(document.getElementById("_content").dataset.first);
  let current = null;
  const address = () => {
    const [place, query = ""] = location.hash.slice(1).split("?", 2);
    let id = place;
    try { id = decodeURIComponent(place); } catch { /* typed by hand: no such place */ }
    return [id, new URLSearchParams(query)];
  };
  const link = (id, query) => `#${encodeURIComponent(id)}${String(query) ? `?${query}` : ""}`;
  const point = (query) => links.forEach((one, at) => { one.hash = link(sections[at].id, query); });
  const remember = (key, value) => {
    const [, query] = address();
    if (value) query.set(key, value);
    else query.delete(key);
    history.replaceState(null, "", link(current.id, query));
    point(query);
  };

  // The system's colors, until a reader chooses others.
  const dark = document.getElementById("_dark");
  const schemes = { system: dark.media, light: "not all", dark: "all" };
  const store = (() => {
    try { return localStorage; } catch { return null; }
  })();
  const theme = element("button", { type: "button", className: "theme" });
  const color = (scheme) => {
    dark.media = schemes[scheme];
    theme.textContent = `Colors: ${scheme}`;
    theme.onclick = () => {
      const names = Object.keys(schemes);
      const next = names[(names.indexOf(scheme) + 1) % names.length];
      color(next);
      try { store?.setItem("theme", next); } catch { /* kept until the page is closed */ }
    };
  };
  const kept = store?.getItem("theme");
  color(Object.hasOwn(schemes, kept ?? "") ? kept : "system");
  document.querySelector(".top").prepend(theme);

  // In every table the head of a column is a button that sorts by it. A cell is compared by its data-v or by its text; what is not a
  // number comes last in a column of numbers, whichever way it is sorted.
  const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const nameOf = (item) => (item.querySelector("bdi") ?? item).textContent;
  const makeSortable = (table, told = () => {}) => {
    const body = table.tBodies[0], rows = [...body.rows], heads = all("thead th[scope=col]", table);
    const sort = (head, way) => {
      const isNumber = head.matches(".num, [data-first]");
      const keys = new Map(rows.map((row, place) => {
        const cell = row.cells[head.cellIndex];
        const text = cell.dataset.v ?? nameOf(cell);
        return [row, [isNumber ? parseFloat(text.replace("≈", "").replace("−", "-")) : text, place]];
      }));
      const order = ([a, first], [b, second]) => {
        if (!isNumber) return way * words.compare(a, b) || first - second;
        if (isNaN(a) || isNaN(b)) return isNaN(a) - isNaN(b) || first - second;
        return way * (a - b) || first - second;
      };
      const below = new Map(all(":scope > .told", body).map((row) => [row.previousElementSibling, row]));
      const sorted = [...rows].sort((a, b) => order(keys.get(a), keys.get(b)));
      body.append(...sorted.flatMap((row) => (below.has(row) ? [row, below.get(row)] : [row])));
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
    };
    for (const head of heads) {
      const button = element("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const first = (head.dataset.first ?? (head.matches(".num") ? "down" : "up")) === "up" ? 1 : -1;
        const way = { ascending: -1, descending: 1 }[head.getAttribute("aria-sort")] ?? first;
        sort(head, way);
        told(head, way);
      });
    }
    return { rows, heads, sort };
  };

  // One search for a phase: it hides rows and updates in which the text does not occur. A short board needs none.
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const makeSearch = (section) => {
    const entries = all("table.board tbody tr", section);
    if (entries.length < 15) return { set: () => {}, parts: [] };
    const items = [...all("tbody tr", section), ...all(".changes > li", section)];
    const texts = items.map((item) => plain((item.querySelector(":scope > th bdi") ?? item).textContent));
    const field = element("input", { type: "search", autocomplete: "off", spellcheck: false });
    const count = element("p", { className: "found", role: "status" });
    const set = (text) => {
      const wanted = plain(text.trim());
      items.forEach((item, at) => {
        const hidden = !texts[at].includes(wanted);
        if (item.hidden !== hidden) item.hidden = hidden;
      });
      if (field.value !== text) field.value = text;
      count.textContent = wanted ? `${entries.filter((row) => !row.hidden).length} of ${entries.length} entries` : "";
      if (wanted) for (const fold of all("details.older", section)) fold.open = true;
    };
    field.addEventListener("input", () => {
      set(field.value);
      remember("find", field.value.trim());
    });
    return { set, parts: [element("label", { className: "search" }, element("span", {}, "Find a team"), field), count] };
  };

  // Two rows side by side: every column of every table of the phase.
  const compare = (section, pair) => {
    const lines = [];
    for (const box of all(".far", section)) box.classList.remove("far"); // innerText is empty until a cell is laid out
    for (const table of all("table", section)) {
      const rows = pair.map((row) => table.querySelector(`tr[data-row="${row.dataset.row}"]`));
      for (const head of rows.every(Boolean) ? all("thead th[scope=col]:not(.team)", table) : []) {
        const cells = rows.map((row) => element("td", { textContent: row.cells[head.cellIndex].innerText.trim() }));
        if (cells.some((cell) => cell.textContent)) lines.push(element("tr", {}, element("th", { scope: "row", textContent: head.textContent }), ...cells));
      }
    }
    const names = pair.map((row) => element("th", { scope: "col" }, element("bdi", {}, nameOf(row))));
    return element("table", { className: "pair" }, element("thead", {}, element("tr", {}, element("td"), ...names)), element("tbody", {}, ...lines));
  };

  // The board: sorted, searched and opened as its address says.
  const prepareBoard = (section, search) => {
    const table = section.querySelector("table.board"), tools = section.querySelector(".tools");
    const orders = Object.fromEntries(all("input[type=radio]", tools).map((radio) => [radio.value, radio]));
    const keyOf = (head, way) => `${head.dataset.sort}${way > 0 ? "" : "-"}`;
    const mark = (key) => {
      if (key === "rank") orders.rank.checked = true;
      if (key === "q-") orders.mean.checked = true;
      table.classList.toggle("by-rank", key === "rank");
      table.classList.toggle("by-mean", orders.mean.checked);
    };
    const { rows, heads, sort } = makeSortable(table, (head, way) => {
      mark(keyOf(head, way));
      remember("sort", keyOf(head, way) === "rank" ? "" : keyOf(head, way));
    });
    const sortBy = (key) => {
      const head = heads.find((one) => one.dataset.sort === key.replace(/-$/, "")) ?? heads[0];
      const way = key.endsWith("-") ? -1 : 1;
      mark(keyOf(head, way));
      if (head.getAttribute("aria-sort") !== (way > 0 ? "ascending" : "descending")) sort(head, way);
    };
    tools.addEventListener("change", (event) => {
      if (event.target.type !== "radio") return;
      sortBy(event.target.value === "mean" ? "q-" : "rank");
      remember("sort", event.target.value === "mean" ? "q-" : "");
    });
    tools.append(...search.parts);
    tools.hidden = false;

    // Up to two rows are open, each over the width of the table; two are compared.
    const opened = [];
    const unfold = () => {
      for (const told of all("tr.told", table)) told.remove();
      for (const past of opened) {
        const cell = element("td", { colSpan: heads.length }, ...past.querySelector("div").cloneNode(true).childNodes);
        const name = nameOf(past), query = new URLSearchParams({ team: name });
        cell.append(element("p", {}, element("a", { href: link(section.id, query), textContent: "Link to this row" })));
        if (opened.length === 2 && past === opened[1]) cell.prepend(compare(section, opened.map((one) => one.closest("tr"))));
        past.closest("tr").after(element("tr", { className: "told" }, cell));
      }
      remember("team", opened[0] && nameOf(opened[0]));
      remember("with", opened[1] && nameOf(opened[1]));
    };
    table.addEventListener("toggle", ({ target }) => {
      if (!target.matches(".past") || target.open === opened.includes(target)) return;
      if (target.open) opened.push(target);
      else opened.splice(opened.indexOf(target), 1);
      if (opened.length > 2) opened.shift().open = false;
      unfold();
    }, true);

    return () => {
      const [, query] = address();
      sortBy(query.get("sort") ?? "rank");
      for (const team of [query.get("team"), query.get("with")]) {
        const past = team && rows.find((row) => nameOf(row) === team)?.querySelector(".past");
        if (!past || past.open) continue;
        past.open = true;
        past.scrollIntoView({ block: "center" });
      }
    };
  };

  // The rows and the line of one team light up together.
  const prepareLights = (section) => {
    const chart = section.querySelector(".evolution");
    let lit = null;
    const light = (number) => {
      if (number === lit) return;
      lit = number;
      for (const part of all(".lit", section)) part.classList.remove("lit");
      for (const part of number === null ? [] : all(`[data-row="${number}"]`, section)) part.classList.add("lit");
      chart.classList.toggle("dim", chart.querySelector(".lane.lit") !== null);
    };
    const over = ({ target }) => light(target.closest("[data-row]")?.dataset.row ?? null);
    for (const kind of ["mouseover", "focusin"]) section.addEventListener(kind, over);
    for (const kind of ["mouseleave", "focusout"]) section.addEventListener(kind, () => light(null));
  };

  const prepare = (section) => {
    const search = makeSearch(section);
    const follow = section.querySelector("table.board") ? prepareBoard(section, search) : () => {};
    for (const table of all("table:not(.board)", section)) makeSortable(table);
    if (section.querySelector(".evolution")) prepareLights(section);
    for (const ends of all("time.ends", section)) {
      const hours = Math.round((new Date(ends.dateTime) - Date.now()) / 3600000);
      const left = hours > 48 ? `${Math.round(hours / 24)} days` : `${hours} hour${hours === 1 ? "" : "s"}`;
      ends.after(hours > 0 ? ` (${left} left)` : " (over)");
    }
    return () => {
      follow();
      search.set(address()[1].get("find") ?? "");
    };
  };

  // What the address names is shown, and prepared when it is shown for the first time. A place outside all phases changes no phase.
  const prepared = new Map();
  const show = () => {
    const [place, query] = address();
    const target = document.getElementById(place);
    const wanted = target?.closest(".phase") ?? (place && current ? current : fallback);
    if (!wanted) return;
    sections.forEach((section, at) => {
      section.hidden = section !== wanted;
      if (section === wanted) links[at]?.setAttribute("aria-current", "true");
      else links[at]?.removeAttribute("aria-current");
    });
    current = wanted;
    point(query);
    if (!prepared.has(wanted)) prepared.set(wanted, prepare(wanted));
    if (target && target !== wanted) target.scrollIntoView();
    prepared.get(wanted)();
  };
  show();
  addEventListener("hashchange", show);

  // Only one reason for a move is open; Escape or a click elsewhere closes it.
  const closeReasons = (but) => {
    for (const why of all("details.why[open]")) if (why !== but) why.open = false;
  };
  document.addEventListener("click", ({ target }) => closeReasons(target.closest("details.why")));
  document.addEventListener("toggle", ({ target }) => {
    if (target.matches("details.why[open]")) closeReasons(target);
  }, true);
  document.addEventListener("keydown", ({ key, target }) => {
    const why = key === "Escape" && target.closest("details.why[open]");
    if (!why) return;
    why.open = false;
    why.querySelector("summary").focus();
  });
})();
