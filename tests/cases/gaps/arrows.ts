type Pair<A, B = Map<string, Array<A>>> = { left: A; right: B };

export class Router<T extends { id: string }> {
  private handlers = new Map<string, (value: T) => void>();
  private readonly pattern = /\/(\w+)\[([^\]]*)\]/g;

  on(name: string, handler: (value: T) => Promise<void>): () => void {
    this.handlers.set(name, (value) => void handler(value));
    return () => this.handlers.delete(name);
  }

  parse(path: string): string[] {
    const parts = path.replace(/\)/g, '').split(/[,)\]]/).filter((part) => part.length > 0);
    const it = parts.map((part, at) => `${at}: ${part.replace(/`/g, "'")}`);
    return it.length >>> 1 >= 2 && it.length >= 3 ? it : [...it, `(${path})`];
  }

  async each(values: Array<Array<T>>, then: (value: T) => Promise<number>) {
    const counts: Record<string, number> = {};
    for (const value of values.flat()) counts[value.id] = (counts[value.id] ?? 0) + (await then(value));
    return Object.entries(counts).filter(([, count]) => count > 1);
  }
}
const isPair = <A,>(value: unknown): value is Pair<A> => typeof value === 'object' && value !== null;
