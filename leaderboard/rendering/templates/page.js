"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const sections = [...document.querySelectorAll(".phase")];
  const links = [...document.querySelectorAll(".phases a")];

  // One phase at a time; without a choice the one that the page names.
  // What a reader has chosen stands in the address: #phase?team=…&sort=…&way=…&find=…
  const address = () => {
    const [place, query = ""] = location.hash.slice(1).split("?", 2);
    let id = place;
    try { id = decodeURIComponent(place); } catch { /* somebody's typing: no such place */ }
    return [id, new URLSearchParams(query)];
  };
  const remember = (id, key, value) => {
    const [at, query] = address();
    const kept = at === id ? query : new URLSearchParams();
    if (value) kept.set(key, value);
    else kept.delete(key);
    const told = kept.toString();
    history.replaceState(null, "", `#${encodeURIComponent(id)}${told ? `?${told}` : ""}`);
  };
  const show = () => {
    const [wanted] = address();
    const holder = document.getElementById(wanted)?.closest(".phase");
    const id = holder ? holder.id : document.getElementById("content").dataset.first;
    for (const section of sections) section.hidden = section.id !== id;
    for (const link of links) {
      if (link.hash === "#" + id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  if (links.length) {
    show();
    addEventListener("hashchange", show);
  }

  // As the system has it, until a reader wants it otherwise.
  const themes = ["system", "light", "dark"];
  const store = (() => {
    try { return localStorage; } catch { return null; }
  })();
  const theme = document.createElement("button");
  theme.type = "button";
  theme.className = "theme";
  const dress = (wanted) => {
    if (wanted === "system") delete root.dataset.theme;
    else root.dataset.theme = wanted;
    theme.textContent = `Colours: ${wanted}`;
    theme.dataset.now = wanted;
  };
  dress(themes.includes(store?.getItem("theme")) ? store.getItem("theme") : "system");
  theme.addEventListener("click", () => {
    const next = themes[(themes.indexOf(theme.dataset.now) + 1) % themes.length];
    dress(next);
    try { store?.setItem("theme", next); } catch { /* it holds until the page is closed */ }
  });
  document.querySelector(".top").prepend(theme);

  // What a column sorts by, and which way first. Numbers that are missing go last either way.
  const columns = { rank: ["n", 1], move: ["n", -1], team: ["t", 1], q: ["n", -1], mean: ["n", 1], group: ["n", 1], count: ["n", -1], last: ["t", -1] };
  const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

  for (const section of sections) {
    const table = section.querySelector("table.board");
    if (!table) continue;
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const name = new Map(rows.map((row) => [row, row.querySelector("bdi").textContent]));
    const heads = [...table.querySelectorAll("th[data-sort]")];
    const tools = section.querySelector(".tools");
    tools.hidden = false;

    const value = (row, key) => (key === "team" ? name.get(row) : row.dataset[key]);
    const sort = (key, way) => {
      const kind = columns[key][0];
      const order = (a, b) => {
        const x = value(a, key), y = value(b, key);
        if (kind === "t") return way * words.compare(x, y) || a.dataset.rank - b.dataset.rank;
        if ((x === "") !== (y === "")) return x === "" ? 1 : -1;
        return way * (x - y) || a.dataset.rank - b.dataset.rank;
      };
      body.append(...rows.sort(order));
      for (const head of heads) {
        if (head.dataset.sort === key) head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      }
      table.classList.toggle("by-rank", key === "rank" && way > 0);
    };
    const stand = (by) => {
      table.classList.toggle("by-mean", by === "mean");
      if (by === "mean") sort("q", -1);
      else sort("rank", 1);
    };
    const chosen = address()[0] === section.id ? address()[1] : new URLSearchParams();
    for (const head of heads) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const key = head.dataset.sort, first = columns[key][1];
        const now = head.getAttribute("aria-sort");
        const way = now ? (now === "ascending" ? -1 : 1) : first;
        sort(key, way);
        remember(section.id, "sort", key === "rank" && way > 0 ? "" : `${key}${way > 0 ? "" : "-"}`);
      });
    }
    for (const radio of tools.querySelectorAll("input[type=radio]")) {
      radio.addEventListener("change", () => {
        stand(radio.value);
        remember(section.id, "sort", radio.value === "mean" ? "q-" : "");
      });
      if (radio.checked) stand(radio.value);
    }
    const [, by, down] = /^(\w+)(-?)$/.exec(chosen.get("sort") ?? "") ?? [];
    if (Object.hasOwn(columns, by ?? "")) sort(by, down ? -1 : 1);

    const found = tools.querySelector(".found");
    const search = tools.querySelector("input[type=search]");
    const filter = () => {
      const wanted = fold(search.value.trim());
      let count = 0;
      for (const row of rows) {
        row.hidden = !fold(name.get(row)).includes(wanted);
        if (!row.hidden) count += 1;
      }
      found.textContent = wanted ? `${count} of ${rows.length} entries` : "";
    };
    search.addEventListener("input", () => {
      filter();
      remember(section.id, "find", search.value.trim());
    });
    if (chosen.get("find")) search.value = chosen.get("find");
    if (search.value) filter();

    // A team's row opens, one at a time, and has an address of its own.
    const pasts = rows.map((row) => [name.get(row), row.querySelector("details.past")]);
    for (const [team, past] of pasts) {
      past.addEventListener("toggle", () => {
        const open = pasts.filter(([, other]) => other.open);
        if (past.open) for (const [, other] of open) if (other !== past) other.open = false;
        if (past.open) remember(section.id, "team", team);
        else if (!pasts.some(([, other]) => other.open)) remember(section.id, "team", "");
      });
      const share = document.createElement("button");
      share.type = "button";
      share.className = "share";
      share.textContent = "Copy the link to this row";
      share.setAttribute("aria-live", "polite");
      past.addEventListener("toggle", () => { share.textContent = "Copy the link to this row"; });
      share.addEventListener("click", async () => {
        remember(section.id, "team", team);
        try {
          await navigator.clipboard.writeText(location.href);
          share.textContent = "Copied";
        } catch {
          share.textContent = "The link is in the address bar";
        }
      });
      past.append(share);
    }
    const openChosen = () => {
      const [id, query] = address();
      const [, past] = pasts.find(([team]) => id === section.id && team === query.get("team")) ?? [];
      if (!past || past.open) return;
      past.open = true;
      past.scrollIntoView({ block: "center" });
    };
    openChosen();
    addEventListener("hashchange", openChosen);

    // A row and its line in the figure light up together.
    const chart = section.querySelector(".evolution");
    const light = (number) => {
      const lane = number === null ? null : chart.querySelector(`.lane[data-row="${number}"]`);
      for (const lit of section.querySelectorAll(".board .lit, .evolution .lit")) lit.classList.remove("lit");
      chart.classList.toggle("dim", lane !== null);
      if (lane) lane.classList.add("lit");
      if (lane) rows.find((row) => row.dataset.row === number).classList.add("lit");
    };
    for (const part of [...rows, ...chart.querySelectorAll(".lane")]) {
      part.addEventListener("mouseenter", () => light(part.dataset.row));
      part.addEventListener("mouseleave", () => light(null));
      part.addEventListener("focusin", () => light(part.dataset.row));
      part.addEventListener("focusout", () => light(null));
    }

    // Only one explanation is open; Escape closes it.
    const whys = [...table.querySelectorAll("details.why")];
    for (const why of whys) {
      why.addEventListener("toggle", () => {
        if (why.open) for (const other of whys) if (other !== why) other.open = false;
      });
      why.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && why.open) {
          why.open = false;
          why.querySelector("summary").focus();
        }
      });
    }
    document.addEventListener("click", (event) => {
      for (const why of whys) if (why.open && !why.contains(event.target)) why.open = false;
    });

    const older = [...section.querySelectorAll(".changes .older")];
    if (older.length) {
      const more = document.createElement("button");
      more.type = "button";
      more.className = "more";
      more.textContent = `Show ${older.length} older update${older.length === 1 ? "" : "s"}`;
      for (const change of older) change.hidden = true;
      more.addEventListener("click", () => {
        for (const change of older) change.hidden = false;
        older[0].tabIndex = -1;
        older[0].focus();
        more.remove();
      });
      section.querySelector(".changes").after(more);
    }
  }
})();
