// The next edit: what else follows from the last change, shown at its place, a key away.
import * as vscode from "vscode";
import { ExecuteCommandRequest, InlineCompletionTriggerKind, type LanguageClient } from "vscode-languageclient/node";
import { askNextEdit, didShowNextEdit, type NextEdit } from "./messages";
import type { Server } from "./server";
import { own } from "./settings";

const DISMISS = "dg.dismissEdit";
const SETTING = "dg-lsp.next_edit";
const SHOWN = "dg-lsp.nextEditShown";
/** A burst of typing is one change. */
const DEBOUNCE_MS = 250;

interface Place {
  range: vscode.Range;
  text: string;
}

interface Shown {
  client: LanguageClient;
  edit: NextEdit;
  document: vscode.TextDocument;
  /** The next one first. */
  places: Place[];
  /** Whether the server knows of an acceptance. */
  told: boolean;
}

export class NextEdits implements vscode.Disposable {
  private readonly struck = vscode.window.createTextEditorDecorationType({
    textDecoration: "line-through",
    backgroundColor: new vscode.ThemeColor("diffEditor.removedTextBackground"),
  });
  private readonly added = vscode.window.createTextEditorDecorationType({});
  private readonly hint = vscode.window.createTextEditorDecorationType({});
  private readonly following = [
    vscode.workspace.onDidChangeTextDocument((event) => this.changed(event)),
    vscode.workspace.onDidCloseTextDocument((document) => this.shown?.document === document && this.clear()),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration(SETTING) && this.clear()),
    vscode.window.onDidChangeTextEditorVisibleRanges(() => this.shown && this.draw()),
    vscode.window.onDidChangeVisibleTextEditors(() => this.shown && this.draw()),
    vscode.window.onDidChangeActiveTextEditor(() => this.shown && this.draw()),
  ];
  private shown: Shown | undefined;
  private underWay: vscode.CancellationTokenSource | undefined;
  private timer: NodeJS.Timeout | undefined;
  private accepting = false;

  constructor(private readonly server: Server) {}

  /** Ask now. */
  async ask(): Promise<void> {
    this.clear();
    await this.request(InlineCompletionTriggerKind.Invoked);
  }

  /** Jump to the next edit; where the cursor is on its lines already, accept it. */
  async accept(): Promise<void> {
    const [editor, place] = [this.editor(), this.shown?.places[0]];
    if (!editor || !place) {
      return;
    }
    const { start, end } = place.range;
    const { line } = editor.selection.active;
    if (line >= start.line && line <= end.line) {
      await this.put(editor, 1);
    } else {
      editor.selection = new vscode.Selection(start, start);
      editor.revealRange(place.range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    }
  }

  /** Accept the next edit with all that follow from it, wherever the cursor is. */
  async acceptAll(): Promise<void> {
    const editor = this.editor();
    if (editor && this.shown) {
      await this.put(editor, this.shown.places.length);
    }
  }

  /** Do not show this edit again. */
  async dismiss(): Promise<void> {
    const held = this.shown;
    this.clear();
    await held?.client
      .sendRequest(ExecuteCommandRequest.type, { command: DISMISS, arguments: held.edit.command.arguments })
      .catch(ended);
  }

  dispose(): void {
    this.clear();
    for (const held of [...this.following, this.struck, this.added, this.hint]) {
      held.dispose();
    }
  }

  private changed({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    const active = document === vscode.window.activeTextEditor?.document;
    // Without a change of the text, it was saved or is said to be changed.
    if (!contentChanges.length || this.accepting || !(active || document === this.shown?.document)) {
      return;
    }
    this.clear();
    if (active && asksByItself()) {
      this.timer = setTimeout(() => void this.request(InlineCompletionTriggerKind.Automatic), DEBOUNCE_MS);
    }
  }

  private async request(triggerKind: InlineCompletionTriggerKind): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const { client, limits } = this.server;
    const offered = client?.initializeResult?.capabilities.executeCommandProvider?.commands;
    if (!editor || !client || !offered?.includes(DISMISS) || limits.whyOff(editor.document)) {
      return;
    }
    const { document } = editor;
    const { version } = document;
    const asked = new vscode.CancellationTokenSource();
    this.underWay = asked;
    const params = {
      textDocument: client.code2ProtocolConverter.asVersionedTextDocumentIdentifier(document),
      position: client.code2ProtocolConverter.asPosition(editor.selection.active),
      context: { triggerKind },
    };
    const answer = await client.sendRequest(askNextEdit, params, asked.token).catch((error: unknown) => {
      if (!asked.token.isCancellationRequested) {
        this.server.log.warn(`No next edit: ${String(error)}`);
      }
    });
    // Cancelled where anything changed, or was asked for, meanwhile.
    if (!answer || asked.token.isCancellationRequested) {
      return;
    }
    this.underWay = undefined;
    asked.dispose();
    const [edit] = answer.edits;
    if (edit && document.version === version && vscode.window.activeTextEditor?.document === document) {
      this.show(client, document, edit);
    } else if (triggerKind === InlineCompletionTriggerKind.Invoked) {
      void vscode.window.showInformationMessage("Nothing follows from the last change.");
    }
  }

  private show(client: LanguageClient, document: vscode.TextDocument, edit: NextEdit): void {
    this.clear();
    const { uri, version } = client.code2ProtocolConverter.asVersionedTextDocumentIdentifier(document);
    const all = [edit, ...(edit.linked ?? [])];
    // The server's edits stay in the document that it was asked about.
    if (all.some(({ textDocument: held }) => held.uri !== uri || held.version !== version)) {
      return;
    }
    const end = document.eol === vscode.EndOfLine.CRLF ? "\r\n" : "\n";
    const places = all.map(({ range, text }) => ({
      range: document.validateRange(client.protocol2CodeConverter.asRange(range)),
      text: text.replaceAll(/\r\n|\r|\n/g, end),
    }));
    this.shown = { client, edit, document, places, told: false };
    this.draw();
    void client.sendNotification(didShowNextEdit, { item: { command: edit.command } });
  }

  /** Accept the first places in one step to undo. */
  private async put(editor: vscode.TextEditor, count: number): Promise<void> {
    const held = this.shown;
    if (!held || this.accepting) {
      return;
    }
    const { document, client, edit } = held;
    const version = document.version + 1;
    const taken = held.places.slice(0, count);
    const moved = shifts(document, held.places, taken);
    this.accepting = true;
    // Where the editor is closed meanwhile, it rejects.
    const applied = await editor
      .edit((builder) => taken.forEach(({ range, text }) => builder.replace(range, text)))
      .then((done) => done, () => false);
    this.accepting = false;
    if (!applied || document.version !== version) {
      this.clear();
      if (!applied) {
        void vscode.window.showWarningMessage("The edit could not be made; is the file read-only?");
      }
      return;
    }
    const all = moved.map(({ start, end, text }) => ({
      range: new vscode.Range(document.positionAt(start), document.positionAt(end)),
      text,
    }));
    held.places = all.slice(count);
    if (all[0] && count === 1) {
      editor.selection = new vscode.Selection(all[0].range.end, all[0].range.end);
    }
    if (!held.told) {
      held.told = true;
      const [first] = edit.command.arguments;
      const told = held.places.length === 0 && count > 1 ? [{ ...first, all: true }] : [first];
      await client.sendRequest(ExecuteCommandRequest.type, { command: edit.command.command, arguments: told }).catch(ended);
    }
    if (held.places.length) {
      this.draw();
      return;
    }
    this.clear();
    if (asksByItself()) {
      await this.request(InlineCompletionTriggerKind.Automatic);
    }
  }

  /** The editor in front, if it is the one with what is shown. */
  private editor(): vscode.TextEditor | undefined {
    const editor = vscode.window.activeTextEditor;
    return editor && editor.document === this.shown?.document ? editor : undefined;
  }

  private clear(): void {
    clearTimeout(this.timer);
    this.underWay?.cancel();
    this.underWay?.dispose();
    this.underWay = undefined;
    // Typing clears at every key.
    if (this.shown) {
      this.shown = undefined;
      this.draw();
    }
  }

  private draw(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const places = editor.document === this.shown?.document ? this.shown.places : [];
      editor.setDecorations(this.struck, places.map(({ range }) => range));
      editor.setDecorations(this.added, places.filter(({ text }) => text).map(asAdded));
      editor.setDecorations(this.hint, places.slice(0, 1).flatMap((place) => hints(editor, place)));
    }
    void vscode.commands.executeCommand("setContext", SHOWN, this.editor() !== undefined);
  }
}

/** What is counted is lost with the server; what is shown must not stay. */
function ended(): void {}

function asksByItself(): boolean {
  return own("next_edit", "auto") === "auto";
}

/** Where places are, in UTF-16 code units, once some of them are accepted. These hold their new text then. */
function shifts(
  document: vscode.TextDocument,
  places: readonly Place[],
  taken: readonly Place[],
): { start: number; end: number; text: string }[] {
  const span = ({ range }: Place): [number, number] => [document.offsetAt(range.start), document.offsetAt(range.end)];
  return places.map((place) => {
    const [start, end] = span(place);
    const shift = taken
      .filter((other) => other !== place && other.range.start.isBefore(place.range.start))
      .reduce((sum, other) => sum + other.text.length - (span(other)[1] - span(other)[0]), 0);
    return {
      start: start + shift,
      end: (taken.includes(place) ? start + place.text.length : end) + shift,
      text: place.text,
    };
  });
}

function asAdded({ range, text }: Place): vscode.DecorationOptions {
  return {
    range: new vscode.Range(range.end, range.end),
    renderOptions: {
      after: {
        // A decoration has one line.
        contentText: text.split(/\r?\n/).join(" ⏎ ").replaceAll(" ", "\u00a0"),
        backgroundColor: new vscode.ThemeColor("diffEditor.insertedTextBackground"),
      },
    },
  };
}

/** What is off screen, or folded away, is shown at the edge behind which it lies. */
function hints({ document, visibleRanges }: vscode.TextEditor, { range }: Place): vscode.DecorationOptions[] {
  const { line } = range.start;
  const [first] = visibleRanges;
  if (!first || visibleRanges.some(({ start, end }) => line >= start.line && line <= end.line)) {
    return [];
  }
  const above = visibleRanges.filter(({ end }) => end.line < line).at(-1);
  const { end } = document.lineAt(above ? above.end.line : first.start.line).range;
  const contentText = `${above ? "↓" : "↑"} line ${line + 1} Tab`.replaceAll(" ", "\u00a0");
  const color = new vscode.ThemeColor("editorCodeLens.foreground");
  return [{ range: new vscode.Range(end, end), renderOptions: { after: { contentText, color, margin: "0 0 0 3ch" } } }];
}
