import React, { useState } from "react";

type Props<T> = { rows: T[]; onPick?: (row: T) => void; children?: React.ReactNode };

export function Board<T extends { name: string }>({ rows, onPick, children }: Props<T>) {
  const [picked, setPicked] = useState<T | null>(null);
  const pick = (row: T) => () => {
    setPicked(row);
    onPick?.(row);
  };
  return (
    <section className="board" data-count={rows.length > 3 ? "many" : "few"}>
      <h1>{picked ? `Picked (${picked.name})` : "Don't know yet"}</h1>
      {rows.map((row) => (
        <button key={row.name} onClick={pick(row)} disabled={row === picked}>
          {row.name}: it's {"}"} here
        </button>
      ))}
      <>{children}</>
      <input type="text" value={picked?.name ?? ""} onChange={() => setPicked(null)} />
    </section>
  );
}
