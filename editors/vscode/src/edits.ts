// Rewriting, mending, filling: ask the server, show the canvas settle, offer what came.
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import * as vscode from "vscode";
import { ExecuteCommandRequest } from "vscode-languageclient/node";
import { Canvas } from "./canvas";
import { askInstruction, remember } from "./instruction";
import type { Proposals } from "./messages";
import { Preview, SCHEME } from "./preview";
import { NOT_RUNNING, type Server } from "./server";

/** What commands take from the light bulb, from keybindings and from tests. */
export interface Given {
  uri?: vscode.Uri;
  range?: vscode.Range;
  instruction?: string;
  strength?: number;
}

interface Work {
  command: string;
  title: string;
  range: vscode.Range;
  argument: object;
}

const CANDIDATES = 3;

export class Edits implements vscode.Disposable {
  readonly preview = new Preview();
  readonly canvas = new Canvas();
  /** The sentence shown last; empty where something was proposed, and nothing is to be said of it. */
  said = "";
  private asked = 0;
  /** What the rewrite that is proposed was asked for. */
  private rewriting: { uri: vscode.Uri; work: Work } | undefined;

  constructor(
    private readonly server: Server,
    private readonly memory: vscode.Memento,
  ) {}

  async rewrite(given: Given = {}): Promise<boolean> {
    const editor = await editorOf(given);
    if (!editor) {
      return false;
    }
    const ranges = given.range && !given.range.isEmpty ? [given.range] : selected(editor);
    // Before somebody writes an instruction for nothing.
    if (!(await this.can(editor, "dg.rewrite"))) {
      return false;
    }
    const instruction = given.instruction ?? (await askInstruction(this.memory));
    if (instruction === undefined) {
      return false;
    }
    if (instruction) {
      await remember(this.memory, instruction);
    }
    const { strength } = given;
    const range = ranges.reduce((all, each) => all.union(each));
    const argument = {
      // What lies between several selections stays.
      ...(ranges.length > 1 ? { ranges: ranges.map(plain) } : { range: plain(range) }),
      n: CANDIDATES,
      ...(instruction ? { instruction } : {}),
      ...(strength === undefined ? {} : { strength }),
    };
    return this.propose(editor, { command: "dg.rewrite", title: "Rewriting", range, argument });
  }

  /** Ask for something else in place of what is selected in a proposed rewrite; the rest of the proposal stays. */
  async notThis(): Promise<boolean> {
    const [choice, proposal, held] = [this.preview.current, vscode.window.activeTextEditor, this.rewriting];
    const struck = proposal?.document.uri.scheme === SCHEME ? selectedWords(proposal) : [];
    if (!choice || !held || !struck.length) {
      return this.say("Select on the right side of a proposed rewrite what shall be something else.");
    }
    const editor = await editorOf({ uri: held.uri });
    if (!editor) {
      return false;
    }
    const { text: shown } = choice.candidate;
    const argument = { ...held.work.argument, shown, struck: struck.map(plain) };
    return this.propose(editor, { ...held.work, argument });
  }

  async fix(given: Given = {}): Promise<boolean> {
    const editor = await editorOf(given);
    const range = given.range ?? (editor?.selection.isEmpty === false ? editor.selection : undefined);
    const shown = range ?? editor?.visibleRanges[0];
    if (!editor || !shown) {
      return false;
    }
    const argument = range ? { range: plain(range) } : {};
    return this.propose(editor, { command: "dg.fix", title: "Mending", range: shown, argument });
  }

  async fill(given: Given = {}): Promise<boolean> {
    const editor = await editorOf(given);
    if (!editor) {
      return false;
    }
    const places = given.range ? [given.range.start] : editor.selections.map(({ active }) => active);
    const [first = editor.selection.active, ...others] = places;
    const range = others.reduce((all, each) => all.union(new vscode.Range(each, each)), new vscode.Range(first, first));
    const positions = places.map(({ line, character }) => ({ line, character }));
    const argument = positions.length > 1 ? { positions } : { position: positions[0] };
    return this.propose(editor, { command: "dg.fillHere", title: "Filling", range, argument });
  }

  dispose(): void {
    this.preview.dispose();
    this.canvas.dispose();
  }

  private async propose(editor: vscode.TextEditor, work: Work): Promise<boolean> {
    const { document } = editor;
    if (!(await this.can(editor, work.command))) {
      return false;
    }
    const proposals = await this.ask(editor, work);
    const client = this.server.client;
    if (!proposals || !client) {
      return false;
    }
    if (!proposals.candidates.length) {
      return this.say(proposals.message || "The model has no proposal here.");
    }
    const edits = proposals.candidates.map(({ edit }) => client.protocol2CodeConverter.asWorkspaceEdit(edit));
    const choices = await Promise.all(edits);
    if (proposals.version !== document.version) {
      return this.say("The text has changed meanwhile; ask again.");
    }
    this.said = proposals.message ?? "";
    if (this.said) {
      void vscode.window.showWarningMessage(this.said);
    }
    this.rewriting = work.command === "dg.rewrite" ? { uri: document.uri, work } : undefined;
    await this.preview.show(
      document,
      proposals.candidates.flatMap((candidate, at) => {
        const edit = choices[at];
        return edit ? [{ candidate, edit }] : [];
      }),
    );
    return true;
  }

  private async ask(editor: vscode.TextEditor, work: Work): Promise<Proposals | undefined> {
    const token = `dg-vscode-${process.pid}-${++this.asked}`;
    const argument = { uri: editor.document.uri.toString(), draftToken: token, ...work.argument };
    const drawing = this.server.onDraft((draft) => {
      if (draft.token === token) {
        this.canvas.draw(editor, work.range, draft);
      }
    });
    this.canvas.begin(editor, work.range);
    const options = { location: vscode.ProgressLocation.Notification, title: `${work.title}…`, cancellable: true };
    try {
      return await vscode.window.withProgress(options, async (_, cancelled) => {
        const params = { command: work.command, arguments: [argument] };
        const sent = this.server.client?.sendRequest(ExecuteCommandRequest.type, params, cancelled);
        const answer = await sent?.catch((error: unknown) => {
          // Whoever cancels knows.
          if (!cancelled.isCancellationRequested) {
            throw error;
          }
        });
        return cancelled.isCancellationRequested ? undefined : (answer as Proposals | undefined);
      });
    } catch (error) {
      this.say(error instanceof Error ? error.message : String(error));
      return undefined;
    } finally {
      drawing.dispose();
      this.canvas.end(editor);
    }
  }

  private say(sentence: string): false {
    this.said = sentence;
    void vscode.window.showWarningMessage(sentence);
    return false;
  }

  /** Whether a command can work in a document; else a sentence says why not. */
  private async can({ document }: vscode.TextEditor, command: string): Promise<boolean> {
    const why = this.whyNot(document, command) ?? (await whyReadOnly(document));
    return why ? this.say(why) : true;
  }

  private whyNot(document: vscode.TextDocument, command: string): string | undefined {
    const { client } = this.server;
    if (!client) {
      return NOT_RUNNING;
    }
    const offered = client.initializeResult?.capabilities.executeCommandProvider?.commands ?? [];
    if (!offered.includes(command)) {
      return `This dg-lsp can't do ${command}; upgrade it.`;
    }
    return this.server.limits.whyOff(document);
  }
}

async function editorOf(given: Given): Promise<vscode.TextEditor | undefined> {
  const open = vscode.window.activeTextEditor;
  if (!given.uri || open?.document.uri.toString() === given.uri.toString()) {
    return open;
  }
  return vscode.window.showTextDocument(given.uri);
}

async function whyReadOnly({ uri }: vscode.TextDocument): Promise<string | undefined> {
  return uri.scheme === "file" && (await isLocked(uri.fsPath)) ? "This file is read-only." : undefined;
}

/** Whether a file may not be written, also where its owner is an administrator, who could. */
async function isLocked(path: string): Promise<boolean> {
  try {
    await access(path, constants.W_OK);
    return ((await stat(path)).mode & 0o222) === 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}

/** The selections, or else the cursors' lines. */
function selected(editor: vscode.TextEditor): [vscode.Range, ...vscode.Range[]] {
  const [first, ...others] = editor.selections.map((each) =>
    each.isEmpty ? editor.document.lineAt(each.active.line).range : each,
  );
  return [first ?? editor.selection, ...others];
}

/** The selections, or else the words at the cursors. */
function selectedWords({ document, selections }: vscode.TextEditor): vscode.Range[] {
  return selections.flatMap((each) => {
    const range = each.isEmpty ? document.getWordRangeAtPosition(each.active) : each;
    return range ? [range] : [];
  });
}

function plain({ start, end }: vscode.Range): object {
  return {
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
  };
}
