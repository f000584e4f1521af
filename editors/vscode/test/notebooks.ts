// Notebooks: what is suggested in a cell knows the cells above it.
import * as vscode from "vscode";
import { account, equal, ready, take, test, until } from "./harness";

const COMMIT = "editor.action.inlineSuggest.commit";
const CODE = vscode.NotebookCellKind.Code;
const PROSE = vscode.NotebookCellKind.Markup;
type Cell = [kind: vscode.NotebookCellKind, text: string];
const BOXES: Cell[] = [
  [CODE, "radius = 3"],
  [PROSE, "# Boxes"],
  [CODE, "%cd ..\nwidth = 4"],
  [CODE, "area = "],
  [CODE, "print(area)"],
];

async function notebook(name: string, cells: Cell[]): Promise<vscode.NotebookEditor> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  if (!folder) {
    throw new Error("no folder is open");
  }
  const uri = vscode.Uri.joinPath(folder, name);
  const file = {
    nbformat: 4,
    nbformat_minor: 5,
    metadata: { language_info: { name: "python" } },
    cells: cells.map(([kind, source], at) => ({
      id: `c${at}`,
      cell_type: kind === CODE ? "code" : "markdown",
      metadata: {},
      source,
      ...(kind === CODE ? { execution_count: null, outputs: [] } : {}),
    })),
  };
  await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(JSON.stringify(file)));
  const opened = await vscode.workspace.openNotebookDocument(uri);
  return vscode.window.showNotebookDocument(opened);
}

/** The editor of a cell, with the cursor at its end, as if somebody had clicked there. */
async function cellEditor(editor: vscode.NotebookEditor, at: number): Promise<vscode.TextEditor> {
  const { document } = editor.notebook.cellAt(at);
  const found = await until(async () => {
    editor.selection = new vscode.NotebookRange(at, at + 1);
    await vscode.commands.executeCommand("notebook.cell.edit");
    const active = vscode.window.activeTextEditor;
    return active?.document === document ? active : undefined;
  }, `the editor of cell ${at}`);
  const end = document.positionAt(document.getText().length);
  found.selection = new vscode.Selection(end, end);
  return found;
}

async function change(editor: vscode.NotebookEditor, ...edits: vscode.NotebookEdit[]): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  edit.set(editor.notebook.uri, edits);
  equal(await vscode.workspace.applyEdit(edit), true);
}

const texts = (editor: vscode.NotebookEditor): string[] =>
  editor.notebook.getCells().map((cell) => cell.document.getText());

test("a name of the first cell is suggested in a later one", async () => {
  await ready();
  const editor = await notebook("boxes.ipynb", BOXES);
  await take(await cellEditor(editor, 3), COMMIT, "area = radius * width");
  equal(texts(editor), ["radius = 3", "# Boxes", "%cd ..\nwidth = 4", "area = radius * width", "print(area)"]);
});

test("a cell that was moved, and one that was put in and deleted, are where they are seen", async () => {
  await ready();
  const editor = await notebook("moved.ipynb", [[CODE, "area = "], ...BOXES.slice(0, 3), [CODE, "print(area)"]]);
  const far = new vscode.NotebookCellData(CODE, "far = 1", "python");
  await change(editor, vscode.NotebookEdit.insertCells(0, [far]));
  await change(editor, vscode.NotebookEdit.deleteCells(new vscode.NotebookRange(0, 1)));
  await cellEditor(editor, 0);
  for (const _ of [1, 2, 3]) {
    await vscode.commands.executeCommand("notebook.cell.moveDown");
  }
  equal(texts(editor)[3], "area = ");
  await take(await cellEditor(editor, 3), COMMIT, "area = radius * width");
});

test("a cell that becomes prose, and code again, is a cell still", async () => {
  await ready();
  const code = BOXES.map(([, text]): Cell => [CODE, text.replace("# Boxes", "Boxes")]);
  const editor = await notebook("kinds.ipynb", code);
  await cellEditor(editor, 1);
  await vscode.commands.executeCommand("notebook.cell.changeToMarkdown");
  await until(() => editor.notebook.cellAt(1).kind === PROSE, "a cell of prose");
  await take(await cellEditor(editor, 3), COMMIT, "area = radius * width");
});

test("a notebook that the server lost track of is sent again", async () => {
  const { server } = await ready();
  const editor = await notebook("lost.ipynb", BOXES);
  const uri = editor.notebook.cellAt(3).document.uri.toString();
  const known = async (): Promise<string | undefined> => (await account({ uri })).document?.off;
  await until(async () => (await known()) === "", "the cell");
  await server.client?.sendNotification("notebookDocument/didChange", {
    notebookDocument: { uri: editor.notebook.uri.toString(), version: 1000 },
    change: { cells: { structure: 3 } },
  });
  await until(async () => (await known()) === "", "the cell again");
  await take(await cellEditor(editor, 3), COMMIT, "area = radius * width");
});

test("a huge notebook is left alone", async () => {
  const { server } = await ready();
  const editor = await notebook("huge.ipynb", [[CODE, "x = 1\n".repeat(200_000)]]);
  const { document } = editor.notebook.cellAt(0);
  equal(server.limits.whyOff(document), "This file is longer than the setting dg-lsp.maxFileBytes allows.");
  equal((await account({ uri: document.uri.toString() })).document?.off, "The document is not open.");
});
