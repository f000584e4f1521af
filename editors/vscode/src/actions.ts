// The light bulb: the server's rewrites go through the extension, which asks for an instruction and shows a diff.
import * as vscode from "vscode";

const REWRITES = new Set(["dg.rewriteSelection", "dg.rewrite"]);
type Action = vscode.CodeAction | vscode.Command;

export function asksForInstruction(
  actions: readonly Action[],
  document: vscode.TextDocument,
  range: vscode.Range,
): Action[] {
  return actions.map((action) => {
    if (!(action instanceof vscode.CodeAction) || !action.kind?.value.startsWith("refactor.rewrite")) {
      return action;
    }
    if (action.command && !REWRITES.has(action.command.command)) {
      return action;
    }
    const ours = new vscode.CodeAction("Rewrite Selection…", action.kind);
    ours.command = { command: "dg-lsp.rewrite", title: ours.title, arguments: [{ uri: document.uri, range }] };
    return ours;
  });
}
