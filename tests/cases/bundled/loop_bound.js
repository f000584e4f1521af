function indexOfLargest(values) {
  let best = 0;
  for (let i = 1; i < ▮values.length▮; i++) {
    if (values[i] > values[best]) {
      best = i;
    }
  }
  return best;
}

module.exports = indexOfLargest;
