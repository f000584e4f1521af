// The user's settings: those for the server, without the extension's own.
import * as vscode from "vscode";

export const SECTION = "dg-lsp";
const OWN = new Set(["serverPath", "maxFileBytes", "trace"]);
/** Names of settings in earlier releases, which still count. */
const OLD_NAMES: Record<string, string> = { "dg-lsp.context.workspace": "dg-lsp.context.elsewhere" };

type Table = Record<string, unknown>;

export function own<T>(key: string, fallback: T): T {
  return (valueOf(`${SECTION}.${key}`) as T | undefined) ?? fallback;
}

export function forServer(): Table {
  const all: Table = {};
  for (const name of Object.keys(declared())) {
    const path = name.split(".").slice(1);
    if (OWN.has(path[0] ?? "")) {
      continue;
    }
    const last = path.pop() ?? "";
    const table = path.reduce((held, key) => (held[key] ??= {}) as Table, all);
    const old = OLD_NAMES[name];
    table[last] = (old && vscode.workspace.getConfiguration().get(old)) ?? valueOf(name);
  }
  return all;
}

/** VS Code itself takes what only the user may set from a workspace, too, if it is inside of an object there. */
function valueOf(name: string): unknown {
  const held = vscode.workspace.getConfiguration().inspect(name);
  return declared()[name]?.scope === "machine"
    ? (held?.globalValue ?? held?.defaultValue)
    : vscode.workspace.getConfiguration().get(name);
}

function declared(): Record<string, { scope?: string }> {
  return vscode.extensions.getExtension("dg-lsp.dg-lsp")?.packageJSON.contributes.configuration.properties;
}
