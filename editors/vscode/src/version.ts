// Which servers this extension can talk to.

const NEEDS = [0, 1, 0] as const;

export function isOutdated(version: string | undefined): boolean {
  const parts = (version ?? "0").split(/[.+-]/).map((part) => Number.parseInt(part, 10) || 0);
  for (const [at, wanted] of NEEDS.entries()) {
    const has = parts[at] ?? 0;
    if (has !== wanted) {
      return has < wanted;
    }
  }
  return false;
}
