(function () {
  "use strict";
  // More at once would keep a browser busy for seconds.
  var OPEN_AT_ONCE = 60;
  function all(what) { return Array.prototype.slice.call(document.querySelectorAll(what)); }
  var rows = all(".matrix tbody tr").map(filtered);
  var hosts = all("details.host").map(filtered);
  var find = document.getElementById("find");
  var shown = document.getElementById("shown");
  var empty = document.querySelector(".empty");
  var buttons = all("button.state");
  var causes = all("button[data-key]");

  // Asked of the document once: a key stroke in a fleet only compares strings.
  function filtered(element) {
    return { element: element, state: element.dataset.state, find: element.dataset.find, isOut: false };
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
    if (event.target.open && event.target.matches("details.raw")) { fill(event.target); }
  }, true);

  function follow() {
    var id;
    try { id = decodeURIComponent(location.hash.slice(1)); } catch (error) { return; }
    var host = id && document.getElementById(id);
    if (host && host.matches("details.host")) {
      host.hidden = false;
      host.open = true;
      host.scrollIntoView();
      host.querySelector("summary").focus({ preventScroll: true });
    }
  }
  window.addEventListener("hashchange", follow);
  document.addEventListener("click", function (event) {
    var link = event.target.closest(".matrix a, .causes a, .other a");
    // The same link twice changes no hash, and should still lead there.
    if (link && link.getAttribute("href") === location.hash) { follow(); }
  });

  function show(items, fits) {
    return items.filter(function (item) {
      var isOut = !fits(item);
      if (isOut !== item.isOut || item.element.hidden !== isOut) { item.element.hidden = item.isOut = isOut; }
      return !isOut;
    }).length;
  }

  function filter() {
    var words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    var states = buttons.filter(function (b) { return b.getAttribute("aria-pressed") === "true"; })
      .map(function (b) { return b.dataset.state; });
    function fits(item) {
      return (!states.length || states.indexOf(item.state) >= 0) &&
        words.every(function (word) { return item.find.indexOf(word) >= 0; });
    }
    var count = show(rows, fits);
    show(hosts, fits);
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

  function step(row, by) {
    var visible = rows.filter(function (item) { return !item.isOut; });
    if (!visible.length) { return; }
    var at = row ? visible.map(function (item) { return item.element; }).indexOf(row) + by : 0;
    if (at < 0 && by === -1) { find.focus(); return; }
    visible[Math.max(0, Math.min(visible.length - 1, at))].element.querySelector("a").focus();
  }

  if (find) {
    // What only the script can do is not offered without it.
    find.form.hidden = false;
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
    causes.forEach(function (button) {
      button.hidden = false;
      button.nextElementSibling.hidden = true;
      button.addEventListener("click", function () {
        clear();
        find.value = button.dataset.key;
        filter();
        find.form.scrollIntoView();
      });
    });
    document.getElementById("clear").addEventListener("click", clear);
    document.querySelector(".matrix").addEventListener("keydown", function (event) {
      var row = event.target.closest("tbody tr");
      var moves = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
      if (row && moves[event.key]) { step(row, moves[event.key]); event.preventDefault(); }
    });
    // A reload may keep what was typed.
    if (find.value) { filter(); }
  }

  var openAll = document.getElementById("open-all");
  if (openAll) {
    openAll.addEventListener("click", function () {
      var some = hosts.filter(function (host) { return !host.element.hidden; });
      some.slice(0, OPEN_AT_ONCE).forEach(function (host) { host.element.open = true; });
      if (some.length > OPEN_AT_ONCE) { shown.textContent = "Opened the first " + OPEN_AT_ONCE + " of " + some.length + " hosts"; }
    });
    document.getElementById("close-all").addEventListener("click", function () {
      hosts.forEach(function (host) { host.element.open = false; });
    });
  }

  // On paper nothing can be opened: what needs attention is open there.
  var opened = [];
  function toPaper() {
    hosts.forEach(function (host) {
      var isGood = host.state === "compliant" || host.state === "changed";
      if (!isGood && !host.element.hidden && !host.element.open) { host.element.open = true; opened.push(host.element); }
    });
  }
  function fromPaper() {
    opened.forEach(function (element) { element.open = false; });
    opened = [];
  }
  window.addEventListener("beforeprint", toPaper);
  window.addEventListener("afterprint", fromPaper);
  window.matchMedia("print").addEventListener("change", function (event) {
    if (event.matches) { toPaper(); } else { fromPaper(); }
  });

  follow();
})();
