// The canvas as it settles: drafts stand beside the lines that they would replace.
import * as vscode from "vscode";
import type { Draft } from "./messages";

export class Canvas implements vscode.Disposable {
  private readonly working = vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor("editor.wordHighlightBackground"),
    isWholeLine: true,
  });
  private readonly text = vscode.window.createTextEditorDecorationType({});
  /** Lines drawn last, for those who can't see. */
  lines: string[] = [];

  begin(editor: vscode.TextEditor, range: vscode.Range): void {
    editor.setDecorations(this.working, [range]);
  }

  draw(editor: vscode.TextEditor, range: vscode.Range, draft: Draft): void {
    this.lines = draft.text.split("\n");
    const drawn = [];
    // The text may have become shorter since it was asked about.
    const last = Math.min(range.end.line, editor.document.lineCount - 1);
    for (let line = range.start.line; line <= last; line++) {
      const at = line - range.start.line;
      // What does not fit beside a line of its own stands beside the last.
      const text = line === last ? this.lines.slice(at).join(" ⏎ ") : (this.lines[at] ?? "");
      const end = editor.document.lineAt(line).range.end;
      drawn.push({
        range: new vscode.Range(end, end),
        renderOptions: {
          after: {
            contentText: text.replaceAll(" ", "\u00a0"),
            margin: "0 0 0 3ch",
            color: new vscode.ThemeColor("editorGhostText.foreground"),
          },
        },
      });
    }
    editor.setDecorations(this.text, drawn);
  }

  end(editor: vscode.TextEditor): void {
    editor.setDecorations(this.working, []);
    editor.setDecorations(this.text, []);
  }

  dispose(): void {
    this.working.dispose();
    this.text.dispose();
  }
}
