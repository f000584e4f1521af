// What goes wrong, and what is told.
import { chmod } from "node:fs/promises";
import { join, relative } from "node:path";
import * as vscode from "vscode";
import { locate } from "../src/locate";
import { isOutdated } from "../src/version";
import { account, api, equal, open, ready, set, take, test, until } from "./harness";

const ADD = "def add(a, b):\n    return ▮a + b▮\n";

/** Programs in place of the server, which the tests around these have put there. */
const PROGRAMS = process.env["DG_TEST_PROGRAMS"] ?? "";
const SERVER = join(PROGRAMS, "dg-lsp");

async function whoever(program: string, message: RegExp, offered: string): Promise<void> {
  const { bar, server } = await api();
  await set("serverPath", join(PROGRAMS, program));
  await until(() => message.test(bar.status.message), () => `${message}, not ${JSON.stringify(bar.status)}`);
  equal([bar.status.state, bar.text], ["error", "$(warning) dg"]);
  equal(server.client, undefined);
  equal((await bar.entries())[0]?.label, offered);
  await set("serverPath", SERVER);
  await ready();
}

test("a server that is missing is named", () => whoever("missing", /missing, the setting dg-lsp.serverPath, can't be run/, "$(cloud-download) Get the Server…"));

test("a server that always crashes is left alone after some tries", () => whoever("crashing", /ended 4 times by itself/, "$(debug-restart) Restart Server"));

test("a server that is too old is named", () => whoever("outdated", /dg-lsp 0.0.9 is too old/, "$(debug-restart) Restart Server"));

test("a server that is started again while it starts is there in the end", async () => {
  const { server } = await ready();
  await Promise.all([server.restart(), server.restart(), server.restart()]);
  await ready();
});

test("a huge file is left alone", async () => {
  const { server } = await ready();
  const editor = await open(`${"x = 1\n".repeat(200_000)}▮`, "huge.py");
  equal(server.limits.whyOff(editor.document), "This file is longer than the setting dg-lsp.maxFileBytes allows.");
  const told = await account({ uri: editor.document.uri.toString() });
  equal(told.document?.off, "The document is not open.");
  const { document } = editor;
  const all = new vscode.Range(0, 0, document.lineCount, 0);
  equal(await editor.edit((edit) => edit.replace(all, "x = 1\n")), true);
  await server.restart();
  await ready();
  equal(server.limits.whyOff(document), undefined);
  const off = async (): Promise<string | undefined> => (await account({ uri: document.uri.toString() })).document?.off;
  await until(async () => (await off()) === "", "the document, which is short now");
});

test("a document that the server lost track of is sent again", async () => {
  const { server } = await ready();
  const editor = await open(ADD, "lost.py");
  const uri = editor.document.uri.toString();
  const known = async (): Promise<string | undefined> => (await account({ uri })).document?.off;
  await until(async () => (await known()) === "", "the document");
  await server.client?.sendNotification("textDocument/didChange", {
    textDocument: { uri, version: 1000 },
    contentChanges: 3,
  });
  // Typed before anything is known to be wrong.
  await vscode.commands.executeCommand("type", { text: "a" });
  await until(async () => (await known()) === "", "the document again");
  await take(editor, "editor.action.inlineSuggest.commit", ADD.replaceAll("▮", ""));
});

test("a file that is read-only is not rewritten", async () => {
  const { edits } = await ready();
  const editor = await open("▮size = size + 1\n", "locked.py");
  await chmod(editor.document.uri.fsPath, 0o444);
  equal(await vscode.commands.executeCommand("dg-lsp.rewrite", { instruction: "" }), false);
  equal(edits.said, "This file is read-only.");
  await chmod(editor.document.uri.fsPath, 0o644);
});

test("a file on another machine is left alone", async () => {
  const { edits } = await ready();
  const provider = { provideTextDocumentContent: () => "x = 1\n" };
  const registered = vscode.workspace.registerTextDocumentContentProvider("elsewhere", provider);
  const document = await vscode.workspace.openTextDocument(vscode.Uri.parse("elsewhere:/far.py"));
  await vscode.window.showTextDocument(document);
  equal(await vscode.commands.executeCommand("dg-lsp.rewrite", { instruction: "" }), false);
  equal(edits.said, "Only files on this machine are rewritten, and this one (elsewhere:) is none.");
  registered.dispose();
});

test("the server is searched in its places, in order", async () => {
  const folder = PROGRAMS;
  const places = { setting: "", folders: [], path: "", home: "/nowhere" };
  equal(locate({ ...places, path: folder }), { program: SERVER });
  equal(locate({ ...places, folders: [join(folder, "project")], path: folder }), {
    program: join(folder, "project", ".venv", "bin", "dg-lsp"),
  });
  equal(locate({ ...places, home: join(folder, "home") }), {
    program: join(folder, "home", ".local", "bin", "dg-lsp"),
  });
  const missing = { missing: "The server dg-lsp was not found on this machine." };
  equal(locate({ ...places, setting: "~/.local/bin/dg-lsp", home: join(folder, "home") }), {
    program: join(folder, "home", ".local", "bin", "dg-lsp"),
  });
  equal(locate(places), missing);
  // What lies in the working directory, which may be a folder that nobody has vetted, is not looked at.
  equal(locate({ ...places, path: relative(process.cwd(), folder) }), missing);
});

test("versions are compared by number", async () => {
  equal(["0.0.9", "0.1.0", "0.10", "1.0.0rc1", undefined].map(isOutdated), [true, false, false, false, true]);
});
