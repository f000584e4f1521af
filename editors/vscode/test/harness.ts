// A small test runner for the extension host, and waiting.
import * as vscode from "vscode";
import type { Api } from "../src/extension";
import type { Account } from "../src/messages";

const WAIT_MS = 60_000;
const MOST_FAILURES = 9;

type Test = [name: string, run: () => Promise<void>];
const tests: Test[] = [];

export function test(name: string, run: () => Promise<void>): void {
  tests.push([name, run]);
}

/** Run all tests; the last line says how many passed and failed. */
export async function runAll(): Promise<void> {
  let [passed, failed] = [0, 0];
  for (const [name, run] of tests) {
    if (failed > MOST_FAILURES) {
      break;
    }
    try {
      // Saved first: closing would ask.
      await vscode.workspace.saveAll();
      await vscode.commands.executeCommand("workbench.action.closeAllEditors");
      await run();
      passed++;
      console.log(`ok ${name}`);
    } catch (error) {
      failed++;
      console.log(`not ok ${name}: ${error instanceof Error ? error.stack : String(error)}`);
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  if (failed) {
    throw new Error(`${failed} failed`);
  }
}

export async function until<T>(holds: () => T | PromiseLike<T>, what: string | (() => string)): Promise<NonNullable<T>> {
  const ends = Date.now() + WAIT_MS;
  for (;;) {
    const value = await holds();
    if (value) {
      return value;
    }
    if (Date.now() > ends) {
      throw new Error(`waited in vain for ${typeof what === "string" ? what : what()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export function equal(found: unknown, wanted: unknown): void {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) {
    throw new Error(`${JSON.stringify(found)} is not ${JSON.stringify(wanted)}`);
  }
}

export async function api(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Api>("dg-lsp.dg-lsp");
  if (!extension) {
    throw new Error("the extension is not there");
  }
  return extension.activate();
}

/** How things stand; the message's type belongs to the extension's own copy of the client. */
export async function account(asked: { uri?: string; engine?: boolean } = {}): Promise<Account> {
  const { server } = await api();
  return until(() => server.client?.sendRequest<Account>("dg/status", asked), "the server's account");
}

/** Wait until the model is loaded. */
export async function ready(): Promise<Api> {
  const held = await api();
  const { bar } = held;
  await until(
    () => held.server.client && bar.status.state === "ready" && !bar.status.message,
    () => `ready, not ${JSON.stringify(bar.status)}`,
  );
  return held;
}

/** Open a file with a cursor at the first ▮; what stands up to a second one is left out. */
export async function open(marked: string, name = "file.py"): Promise<vscode.TextEditor> {
  const [before = "", ...rest] = marked.split("▮");
  const after = rest.at(-1) ?? "";
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  if (!folder) {
    throw new Error("no folder is open");
  }
  const uri = vscode.Uri.joinPath(folder, name);
  await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(before + after));
  const document = await vscode.workspace.openTextDocument(uri);
  await until(() => document.getText() === before + after, "the file's text");
  const editor = await vscode.window.showTextDocument(document);
  const at = document.positionAt(before.length);
  editor.selection = new vscode.Selection(at, at);
  return editor;
}

/** Ask for a suggestion until taking it changes the text, which then is the wanted one. */
export async function take(editor: vscode.TextEditor, command: string, wanted: string | RegExp): Promise<void> {
  const before = editor.document.getText();
  await until(async () => {
    await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
    await pause(500);
    await vscode.commands.executeCommand(command);
    // The edit comes a little after the command's end.
    await pause(500);
    return editor.document.getText() !== before;
  }, `a change by ${command}`);
  const text = editor.document.getText();
  equal([text, typeof wanted === "string" ? text === wanted : wanted.test(text)], [text, true]);
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Change a setting, and wait until it is known. */
export async function set(key: string, value: unknown): Promise<void> {
  await vscode.workspace.getConfiguration("dg-lsp").update(key, value, vscode.ConfigurationTarget.Global);
}
