"""Scripts that measure a page from inside; the tests and the benchmark of the console run them."""

DRAWN = "return performance.getEntriesByName('drawn').length > 0"
TIMES = """
const paint = performance.getEntriesByName("first-contentful-paint")[0];
const drawn = performance.getEntriesByName("drawn")[0];
return {paint: paint?.startTime, drawn: drawn?.startTime, rows: document.querySelectorAll(".space .row").length}
"""
SCROLL = """
const done = arguments[0], list = document.querySelector(".list"), long = [], frames = [];
const seen = new PerformanceObserver((tasks) => long.push(...tasks.getEntries().map((each) => each.duration)));
seen.observe({type: "longtask"});
let last = performance.now(), step = 0;
function scroll(now) {
  frames.push(now - last);
  last = now;
  list.scrollTop = (list.scrollHeight - list.clientHeight) * step / 120;
  step += 1;
  if (step <= 120) requestAnimationFrame(scroll);
  else setTimeout(() => done({long, frames, rows: document.querySelectorAll(".space .row").length}), 500);
}
requestAnimationFrame(scroll);
"""
