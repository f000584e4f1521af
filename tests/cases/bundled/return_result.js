function groupBy(items, key) {
  const groups = {};
  for (const item of items) {
    const name = item[key];
    if (!groups[name]) {
      groups[name] = [];
    }
    groups[name].push(item);
  }
  return ▮groups▮;
}

module.exports = { groupBy };
