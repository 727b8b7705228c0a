// A long list of which only the visible part exists: ten thousand rows scroll as smoothly as ten.

import { h } from "/static/dom.js";

const AROUND = 6;

export class LongList {
  // `draw(element, item)` fills a row; it is called again only for another item.
  constructor({ label, head, draw, onShown = () => {} }) {
    this.items = [];
    this.draw = draw;
    this.onShown = onShown;
    this.rows = new Map();
    this.space = h("div", { class: "space", role: "rowgroup" });
    this.element = h("div", { class: "list", role: "table", "aria-label": label, tabindex: "0" }, head, this.space);
    this.pending = false;
    this.element.addEventListener("scroll", () => this.later(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.move(event));
    this.height = 44;
    this.room = 800;
    this.spare = [];
    this.watcher = new ResizeObserver(() => { this.measure(); this.later(); });
    this.watcher.observe(this.element);
    this.print = () => this.render(true);
    addEventListener("beforeprint", this.print);
  }

  close() {
    this.watcher.disconnect();
    removeEventListener("beforeprint", this.print);
  }

  set(items) {
    this.items = items;
    this.element.setAttribute("aria-rowcount", String(items.length + 1));
    this.later();
  }

  // Draws all visible rows again.
  refresh(takes = () => true) {
    for (const row of this.rows.values()) if (takes(row.item)) row.item = null;
    this.later();
  }

  later() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.render(false); });
  }

  measure() {
    this.height = parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 44;
    this.room = this.element.clientHeight;
  }

  visible() {
    const { height, room } = this, { scrollTop } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / height) - AROUND);
    return [first, Math.min(this.items.length, Math.ceil((scrollTop + room) / height) + AROUND)];
  }

  render(all) {
    const height = this.height, focused = this.space.contains(document.activeElement) ? document.activeElement.closest("a") : null;
    const [first, last] = all ? [0, Math.min(this.items.length, 2000)] : this.visible();
    const whole = `${this.items.length * height}px`;
    if (this.space.style.height !== whole) this.space.style.height = whole;
    if (height !== this.drawn) this.moveAll(height);
    for (const [index, row] of this.rows) {
      if (index < first || index >= last) { this.spare.push(row); this.rows.delete(index); }
    }
    for (let index = first; index < last; index += 1) this.place(index, height);
    for (const row of this.spare.splice(0)) row.element.remove();
    this.keepFocus(focused);
    this.onShown(this.items.slice(first, last));
  }

  // Rows have another height at another width.
  moveAll(height) {
    this.drawn = height;
    for (const [index, row] of this.rows) row.element.style.transform = `translateY(${index * height}px)`;
  }

  place(index, height) {
    let row = this.rows.get(index);
    if (!row) {
      row = this.spare.pop() ?? { element: h("div", { class: "row", role: "row" }), item: null };
      row.element.setAttribute("aria-rowindex", String(index + 2));
      row.element.style.transform = `translateY(${index * height}px)`;
      this.rows.set(index, row);
      if (!row.element.isConnected) this.space.append(row.element);
    }
    if (row.item !== this.items[index]) {
      row.item = this.items[index];
      this.draw(row.element, row.item);
    }
  }

  // The focus stays on the link of an item that is drawn again, or elsewhere.
  keepFocus(link) {
    if (link && document.activeElement !== link) this.space.querySelector(`a[href="${CSS.escape(link.getAttribute("href"))}"]`)?.focus({ preventScroll: true });
  }

  // Up and down go from link to link.
  move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const current = event.target.closest?.(".row");
    if (!step || !current) return;
    const row = this.rows.get(Number(current.getAttribute("aria-rowindex")) - 2 + step);
    if (!row) return;
    event.preventDefault();
    row.element.querySelector("a")?.focus();
  }
}
