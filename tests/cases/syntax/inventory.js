// Stock of a small shop: what is on the shelves, what has to be ordered.
'use strict'

const { EventEmitter } = require('node:events')

const LOW = 3
const PATTERN = /^[A-Z]{2}-(\d+)$/

class Inventory extends EventEmitter {
  #items = new Map()

  constructor (name, { currency = 'EUR', ...options } = {}) {
    super(options)
    this.name = name
    this.currency = currency
  }

  add (code, count = 1, price) {
    if (!PATTERN.test(code)) {
      throw new TypeError(`not a code: ${code}`)
    }
    const known = this.#items.get(code) ?? { count: 0, price }
    this.#items.set(code, { ...known, count: known.count + count })
    this.emit('added', code, count)
    return this
  }

  * low () {
    for (const [code, { count }] of this.#items) {
      if (count > LOW) continue
      yield code
    }
  }

  get value () {
    let sum = 0
    this.#items.forEach(({ count, price }) => { sum += count * (price || 0) })
    return sum.toFixed(2) + ' ' + this.currency
  }
}

async function restock (inventory, order) {
  const wanted = [...inventory.low()]
  try {
    for (const code of wanted) {
      const count = await order(code, { urgent: wanted.length > 10 })
      inventory.add(code, count)
    }
  } catch (error) {
    console.error('no luck:', error.message)
    return false
  } finally {
    inventory.emit('done')
  }
  switch (wanted.length) {
    case 0:
      return null
    default:
      return true
  }
}

module.exports = { Inventory, restock }
