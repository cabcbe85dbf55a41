"use strict";
(() => {
  const all = (css, within = document) => [...within.querySelectorAll(css)];
  const element = (name, facts, ...inside) => {
    const made = Object.assign(document.createElement(name), facts);
    made.append(...inside);
    return made;
  };
  document.documentElement.classList.add("js");

  // One phase is shown at a time. What a reader has chosen is part of the address: #phase?team=…&sort=…&find=…
  const sections = all(".phase"), links = all(".phases a");
  const fallback = document.getElementById(document.getElementById("content").dataset.first);
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
  const dark = document.getElementById("dark");
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
        return [row, [isNumber ? parseFloat(text.replace("−", "-")) : text, place]];
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

  // A field that hides what does not have a name in it.
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const makeFilter = (items, what, where, told = () => {}) => {
    const names = items.map((item) => plain(all("bdi", item).map((name) => name.textContent).join("\n")));
    const field = element("input", { type: "search", autocomplete: "off", spellcheck: false, ariaLabel: `Find a team: ${where}` });
    const found = element("p", { className: "found", role: "status" });
    const filter = () => {
      const wanted = plain(field.value.trim());
      let count = 0;
      items.forEach((item, at) => {
        const hidden = !names[at].includes(wanted);
        if (item.hidden !== hidden) item.hidden = hidden;
        count += !hidden;
      });
      found.textContent = wanted ? `${count} of ${items.length} ${what}` : "";
    };
    field.addEventListener("input", () => {
      filter();
      told(field.value.trim());
    });
    const set = (text) => {
      if (field.value === text) return;
      field.value = text;
      filter();
    };
    return { set, parts: [element("label", { className: "search" }, element("span", {}, "Find a team"), field), found] };
  };

  // The board: sorted, filtered and opened as its address says.
  const prepareBoard = (section) => {
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
    const filter = makeFilter(rows, "entries", "the board", (text) => remember("find", text));
    tools.append(...filter.parts);
    tools.hidden = false;

    // A team's row opens, one at a time, over the width of the table.
    const close = () => table.querySelector(".told")?.remove();
    const open = (past) => {
      for (const other of all("details.past[open]", table)) if (other !== past) other.open = false;
      close();
      const cell = element("td", { colSpan: heads.length }, ...past.querySelector("div").cloneNode(true).childNodes);
      const share = element("button", { type: "button", className: "share" }, "Copy the link to this row");
      share.setAttribute("aria-live", "polite");
      share.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(location.href);
          share.textContent = "Copied";
        } catch {
          share.textContent = "The link is in the address bar";
        }
      });
      cell.append(share);
      past.closest("tr").after(element("tr", { className: "told" }, cell));
    };
    table.addEventListener("toggle", ({ target }) => {
      if (!target.matches(".past")) return;
      if (target.open) open(target);
      else if (!table.querySelector("details.past[open]")) close();
      remember("team", target.open ? nameOf(target) : all("details.past[open]", table).map(nameOf)[0]);
    }, true);

    return () => {
      const [, query] = address();
      sortBy(query.get("sort") ?? "rank");
      filter.set(query.get("find") ?? "");
      const team = query.get("team");
      const past = team && rows.find((row) => nameOf(row) === team)?.querySelector(".past");
      if (!past || past.open) return;
      past.open = true;
      past.scrollIntoView({ block: "center" });
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
    const follow = section.querySelector("table.board") ? prepareBoard(section) : () => {};
    for (const table of all("table:not(.board)", section)) {
      const { rows } = makeSortable(table);
      const { parts } = makeFilter(rows, "entries", table.caption.textContent);
      table.closest(".scroll").before(element("div", { className: "tools" }, ...parts));
    }
    const changes = section.querySelector(".changes"), older = section.querySelector(".older");
    if (changes) {
      const { parts } = makeFilter(all(".changes > li", section), "updates", "updates", (text) => {
        if (text && older) older.open = true;
      });
      changes.before(element("div", { className: "tools" }, ...parts));
    }
    if (section.querySelector(".evolution")) prepareLights(section);
    return follow;
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
