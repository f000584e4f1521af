// Proposals as a diff: accept one, see the next, or leave it; nothing is changed before.
import * as vscode from "vscode";
import type { Candidate } from "./messages";

export const SCHEME = "dg-lsp-proposal";
const IN_FRONT = "dg-lsp.proposalInFront";

export interface Choice {
  candidate: Candidate;
  edit: vscode.WorkspaceEdit;
}

interface Open {
  document: vscode.TextDocument;
  version: number;
  choices: readonly Choice[];
  index: number;
  shown: vscode.Uri;
}

/** The document's text once an edit is applied. */
export function textAfter(document: vscode.TextDocument, edit: vscode.WorkspaceEdit): string {
  const edits = [...edit.get(document.uri)].sort(
    (one, other) => document.offsetAt(other.range.start) - document.offsetAt(one.range.start),
  );
  return edits.reduce((text, { range, newText }) => {
    const [start, end] = [document.offsetAt(range.start), document.offsetAt(range.end)];
    return text.slice(0, start) + newText + text.slice(end);
  }, document.getText());
}

/** Close tabs; one that gave way to another meanwhile, as VS Code 1.105 lets them, is closed already. */
async function close(tabs: vscode.Tab[]): Promise<void> {
  await vscode.window.tabGroups.close(tabs).then(undefined, () => {});
}

export class Preview implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly registered = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  private readonly following = [
    vscode.window.tabGroups.onDidChangeTabs((event) => {
      if (this.open && event.closed.some((tab) => this.isShown(tab))) {
        this.forget();
      }
      this.tell();
    }),
    vscode.window.tabGroups.onDidChangeTabGroups(() => this.tell()),
  ];
  private open: Open | undefined;

  /** What is proposed now; undefined for nothing. */
  get current(): Choice | undefined {
    return this.open?.choices[this.open.index];
  }

  provideTextDocumentContent(): string {
    return this.open && this.current ? textAfter(this.open.document, this.current.edit) : "";
  }

  async show(document: vscode.TextDocument, choices: readonly Choice[]): Promise<void> {
    await this.reject();
    this.open = { document, version: document.version, choices, index: 0, shown: uriOf(document, 0) };
    await vscode.commands.executeCommand("setContext", "dg-lsp.proposing", true);
    await this.draw();
  }

  async next(): Promise<void> {
    if (this.open) {
      const { document, index, choices } = this.open;
      this.open.index = (index + 1) % choices.length;
      // A diff that is open keeps its title, so each proposal has a tab of its own, one at a time.
      this.open.shown = uriOf(document, this.open.index);
      await this.draw();
      await close(this.tabs().filter((tab) => !this.isShown(tab)));
    }
  }

  async accept(): Promise<boolean> {
    const [held, choice] = [this.open, this.current];
    const holds = held && !held.document.isClosed && held.document.version === held.version;
    const applied = Boolean(holds && choice && (await vscode.workspace.applyEdit(choice.edit)));
    await this.reject();
    if (held && !applied) {
      const why = holds ? "The edit could not be made; is the file read-only?" : "The text has changed meanwhile; ask again.";
      void vscode.window.showWarningMessage(why);
    }
    return applied;
  }

  /** End the proposal, and show the text that it was for. */
  async reject(): Promise<void> {
    const held = this.open;
    const tabs = this.tabs();
    this.forget();
    await close(tabs);
    if (held) {
      await vscode.window.showTextDocument(held.document);
    }
  }

  dispose(): void {
    this.forget();
    for (const held of [this.registered, ...this.following]) {
      held.dispose();
    }
  }

  private async draw(): Promise<void> {
    const held = this.open;
    const candidate = this.current?.candidate;
    if (held && candidate) {
      const sure = `${Math.round(candidate.confidence * 100)}%, ${candidate.syntax}`;
      const title = `Proposal ${held.index + 1} of ${held.choices.length} (${sure})`;
      await vscode.commands.executeCommand("vscode.diff", held.document.uri, held.shown, title, { preview: false });
      this.tell();
    }
  }

  private tabs(): vscode.Tab[] {
    const all = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    return all.filter(({ input }) => input instanceof vscode.TabInputTextDiff && input.modified.scheme === SCHEME);
  }

  private isShown({ input }: vscode.Tab): boolean {
    return input instanceof vscode.TabInputTextDiff && input.modified.toString() === this.open?.shown.toString();
  }

  /** Whether its keys are the proposal's: other diffs have keys of their own. */
  private tell(): void {
    const { activeTab } = vscode.window.tabGroups.activeTabGroup;
    void vscode.commands.executeCommand("setContext", IN_FRONT, activeTab !== undefined && this.isShown(activeTab));
  }

  private forget(): void {
    this.open = undefined;
    void vscode.commands.executeCommand("setContext", "dg-lsp.proposing", false);
    this.tell();
  }
}

function uriOf(document: vscode.TextDocument, index: number): vscode.Uri {
  return vscode.Uri.from({ scheme: SCHEME, path: document.uri.path, query: `${document.version}.${index}` });
}
