// The user's settings: those for the server, without the extension's own.
import * as vscode from "vscode";

export const SECTION = "dg-lsp";
const OWN = new Set(["serverPath", "maxFileBytes", "trace"]);

export function own<T>(key: string, fallback: T): T {
  return vscode.workspace.getConfiguration(SECTION).get<T>(key, fallback);
}

export function forServer(): Record<string, unknown> {
  const all = vscode.workspace.getConfiguration().get<Record<string, unknown>>(SECTION, {});
  return Object.fromEntries(Object.entries(all).filter(([key]) => !OWN.has(key)));
}
