import { useState, type ReactNode } from "react";

interface Props {
  title: string;
  children?: ReactNode;
  onClose(reason: "button" | "escape"): void;
}

export function Panel({ title, children, onClose }: Props) {
  const [open, setOpen] = useState<boolean>(true);
  if (!open) {
    return null;
  }
  return (
    <section className="panel" onKeyDown={(event) => event.key === "Escape" && onClose("escape")}>
      <header>
        <h2>{title}</h2>
        <button
          disabled={!open}
          onClick={() => {
            setOpen(false);
            onClose("button");
          }}
        >
          Close
        </button>
      </header>
      {children ?? <p>Nothing to see.</p>}
    </section>
  );
}
