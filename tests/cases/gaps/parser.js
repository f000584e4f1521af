'use strict';
const QUOTES = ["'", '"', '`'];
/** Splits `(a, "b")` at its commas; see [split](#split). */
function split(text, { sep = ',', keep = false } = {}) {
  const out = [];
  let depth = 0, last = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (/[([{]/.test(c)) depth++;
    else if (/[)\]}]/.test(c)) depth--;
    else if (QUOTES.includes(c)) i = text.indexOf(c, i + 1);
    else if (c === sep && !depth) { out.push(text.slice(last, i + (keep ? 1 : 0))); last = i + 1; }
  }
  return [...out, text.slice(last)].map(s => s.trim().replace(/^"(.*)"$/, '$1'));
}
const name = (s) => s.replace(/\(.*?\)/g, '').replace(/'/g, "\\'");
const total = split('1, (2, 3)').reduce((a, b) => a + (parseInt(b, 10) || 0), 0) / 2 >> 1;
module.exports = { split, name, label: `total: ${total > 1 ? `(${total})` : 'none'}`, then: async () => ({}) };
