(function () {
  "use strict";
  // A browser would take minutes for a whole fleet at once.
  var OPEN_AT_ONCE = 60;
  var rows = Array.prototype.slice.call(document.querySelectorAll(".matrix tbody tr"));
  var hosts = Array.prototype.slice.call(document.querySelectorAll("details.host"));
  var find = document.getElementById("find");
  var shown = document.getElementById("shown");
  var empty = document.querySelector(".empty");
  var buttons = Array.prototype.slice.call(document.querySelectorAll("button.state"));

  // Details are kept as data until somebody looks: a fleet opens as fast as a host.
  // Elements are made one by one, so nothing that a host said is ever read as HTML.
  function unfold(host) {
    var kept = host.querySelector(":scope > script.kept");
    if (kept) {
      kept.remove();
      JSON.parse(kept.textContent).forEach(function (item) { host.appendChild(make(item, null)); });
    }
  }

  function make(item, space) {
    if (typeof item === "string") { return document.createTextNode(item); }
    var tag = item[0];
    if (tag === "svg") { space = "http://www.w3.org/2000/svg"; }
    if (!/^[a-z][a-z0-9]*$/i.test(tag) || tag === "script") { return document.createTextNode(""); }
    var element = space ? document.createElementNS(space, tag) : document.createElement(tag);
    Object.keys(item[1]).forEach(function (name) {
      if (!/^on|^style$/i.test(name)) { element.setAttribute(name, item[1][name]); }
    });
    item.slice(2).forEach(function (child) { element.appendChild(make(child, space)); });
    return element;
  }

  // Raw JSON becomes text, never markup.
  function fill(fold) {
    var pre = fold.querySelector("pre");
    var source = fold.dataset.raw && document.getElementById(fold.dataset.raw);
    if (pre && source && !pre.firstChild) {
      pre.textContent = JSON.stringify(JSON.parse(source.textContent), null, 2);
    }
  }

  document.addEventListener("toggle", function (event) {
    if (!event.target.open) { return; }
    if (event.target.matches("details.host")) { unfold(event.target); }
    if (event.target.matches("details.raw")) { fill(event.target); }
  }, true);

  function open(host) {
    unfold(host);
    host.open = true;
  }

  function follow() {
    var id;
    try { id = decodeURIComponent(location.hash.slice(1)); } catch (error) { return; }
    var host = id && document.getElementById(id);
    if (host && host.matches("details.host")) {
      host.hidden = false;
      open(host);
      host.scrollIntoView();
      host.querySelector("summary").focus({ preventScroll: true });
    }
  }
  window.addEventListener("hashchange", follow);
  document.addEventListener("click", function (event) {
    var link = event.target.closest(".matrix a");
    // The same link twice changes no hash, and should still lead there.
    if (link && link.getAttribute("href") === location.hash) { follow(); }
  });

  function filter() {
    var words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    var states = buttons.filter(function (b) { return b.getAttribute("aria-pressed") === "true"; })
      .map(function (b) { return b.dataset.state; });
    function fits(item) {
      return (!states.length || states.indexOf(item.dataset.state) >= 0) &&
        words.every(function (word) { return item.dataset.find.indexOf(word) >= 0; });
    }
    var count = 0;
    rows.forEach(function (row) { row.hidden = !fits(row); count += row.hidden ? 0 : 1; });
    hosts.forEach(function (host) { host.hidden = !fits(host); });
    empty.hidden = count > 0;
    shown.textContent = count === rows.length
      ? rows.length + " hosts, worst first"
      : "Showing " + count + " of " + rows.length + " hosts";
  }

  function clear() {
    find.value = "";
    buttons.forEach(function (b) { b.setAttribute("aria-pressed", "false"); });
    filter();
    find.focus();
  }

  if (find) {
    find.addEventListener("input", filter);
    find.form.addEventListener("submit", function (event) { event.preventDefault(); });
    find.addEventListener("keydown", function (event) {
      if (event.key === "Escape") { clear(); event.preventDefault(); }
      if (event.key === "ArrowDown") { step(null, 1); event.preventDefault(); }
    });
    buttons.forEach(function (button) {
      button.addEventListener("click", function () {
        button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
        filter();
      });
    });
    document.getElementById("clear").addEventListener("click", clear);
    document.getElementById("open-all").addEventListener("click", function () {
      var some = hosts.filter(function (host) { return !host.hidden; });
      some.slice(0, OPEN_AT_ONCE).forEach(open);
      if (some.length > OPEN_AT_ONCE) { shown.textContent = "Opened the first " + OPEN_AT_ONCE + " of " + some.length + " hosts"; }
    });
    document.getElementById("close-all").addEventListener("click", function () {
      hosts.forEach(function (host) { host.open = false; });
    });
    document.querySelector(".matrix").addEventListener("keydown", function (event) {
      var row = event.target.closest("tbody tr");
      var moves = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
      if (row && moves[event.key]) { step(row, moves[event.key]); event.preventDefault(); }
    });
    // A reload may keep what was typed.
    if (find.value) { filter(); }
  }

  function step(row, by) {
    var visible = rows.filter(function (item) { return !item.hidden; });
    if (!visible.length) { return; }
    var at = row ? visible.indexOf(row) + by : 0;
    if (at < 0 && by === -1) { find.focus(); return; }
    visible[Math.max(0, Math.min(visible.length - 1, at))].querySelector("a").focus();
  }

  // On paper nothing can be opened: what needs attention is open there.
  var opened = [];
  function toPaper() {
    hosts.forEach(function (host) {
      var isGood = host.dataset.state === "compliant" || host.dataset.state === "changed";
      if (!isGood && !host.hidden && !host.open) { open(host); opened.push(host); }
    });
  }
  function fromPaper() {
    opened.forEach(function (host) { host.open = false; });
    opened = [];
  }
  window.addEventListener("beforeprint", toPaper);
  window.addEventListener("afterprint", fromPaper);
  window.matchMedia("print").addEventListener("change", function (event) {
    if (event.matches) { toPaper(); } else { fromPaper(); }
  });

  // Shown until the script is there: a viewer may forbid it without calling it switched off.
  var notice = document.getElementById("needs-script");
  if (notice) { notice.remove(); }
  hosts.forEach(function (host) { if (host.open) { unfold(host); } });
  follow();
})();
