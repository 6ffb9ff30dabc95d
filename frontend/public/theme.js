// Before the first paint, so that a dark page does not flash white. A file, because the page allows no inline script.
(function () {
  var chosen = null;
  try {
    chosen = window.localStorage.getItem('mantine-color-scheme-value');
  } catch {
    // Storage may be forbidden; then the system's choice holds.
  }
  var dark = window.matchMedia('(prefers-color-scheme: dark)').matches;
  var scheme = chosen === 'dark' || chosen === 'light' ? chosen : dark ? 'dark' : 'light';
  document.documentElement.setAttribute('data-mantine-color-scheme', scheme);
})();
