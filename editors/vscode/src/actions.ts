// The light bulb: the server's rewrites go through the extension, which shows a diff, and asks for an instruction where
// the action has none.
import * as vscode from "vscode";

const REWRITES = new Set(["dg.rewriteSelection", "dg.rewrite"]);
interface Span {
  start: { line: number; character: number };
  end: { line: number; character: number };
}
/** What the server's action says of a named rewrite. */
interface Told {
  range: Span;
  instruction?: string;
}
type Action = vscode.CodeAction | vscode.Command;

export function asksForInstruction(
  actions: readonly Action[],
  document: vscode.TextDocument,
  range: vscode.Range,
): Action[] {
  return actions.map((action) => {
    if (!(action instanceof vscode.CodeAction) || !action.command || !REWRITES.has(action.command.command)) {
      return action;
    }
    const told = action.command.arguments?.[0] as Told | undefined;
    const named = told?.instruction ? told : undefined;
    // What the server adds to the name stays: that the model follows no instructions.
    const title = named ? action.title : action.title.replace(/^Rewrite selection/, "Rewrite Selection…");
    const ours = new vscode.CodeAction(title, action.kind);
    const place = named ? spanOf(named.range) : range;
    const given = { uri: document.uri, range: place, instruction: named?.instruction };
    ours.command = { command: "dg-lsp.rewrite", title: ours.title, arguments: [given] };
    return ours;
  });
}

function spanOf({ start, end }: Span): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}
