// How often a server may end by itself before it is left alone.

const WINDOW_MS = 3 * 60_000;
export const RESTARTS = 3;

export class Crashes {
  private times: number[] = [];

  /** Note a crash; true where the server is worth another start. */
  happened(nowMs: number): boolean {
    this.times = [...this.times.filter((at) => nowMs - at < WINDOW_MS), nowMs];
    return this.times.length <= RESTARTS;
  }

  get count(): number {
    return this.times.length;
  }

  forget(): void {
    this.times = [];
  }
}
