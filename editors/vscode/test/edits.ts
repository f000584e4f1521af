// Rewriting, mending, filling, from the oracle of the Python tests.
import * as vscode from "vscode";
import { api, equal, open, ready, test, until } from "./harness";

const LINES = "# Growth.\ndef grow(size):\n    ▮size = size + 1\n    total = size * 2\n    return total\n";
const HINTED = "# Growth.\ndef grow(size: int) -> int:\n    size = size + 1\n    total = size * 2\n    return total\n";
const BETTER = "# Growth.\ndef grow(size):\n    size += 1\n    total = size * 2\n    return total\n";
const RENAMED = "# Growth.\ndef grow(size):\n    size += 2\n    total = size * 2\n    return total\n";
const BROKEN = "def area(width, height):\n    return max(width * height, 1▮\n\n\nprint(area(2, 3))\n";
const EMPTY_BODY = "# Twice.\ndef double(value):▮\n\n\nprint(double(2))\n";
const SLOW = "# Slow.\n▮slowly = [1, 2, 3, 4, 5, 6, 7, 8, 9]\n";
const PASSES = "# Pair.\ndef left():\n    ▮pass\n\n\ndef right():\n    pass\n";
const PAIR = "# Pair.\ndef left():\n    return 1\n\n\ndef right():\n    return 2\n";
const SHADE = "# Shade.\n▮shade = 'green'\n";
const plain = (marked: string): string => marked.replaceAll("▮", "");
const run = (name: string, given?: object): Thenable<unknown> => vscode.commands.executeCommand(`dg-lsp.${name}`, given);

function selectLine(editor: vscode.TextEditor, line: number): void {
  const { range } = editor.document.lineAt(line);
  editor.selection = new vscode.Selection(range.start, range.end);
}

/** Run a command, which then has proposed something. */
async function propose(name: string, given?: object): Promise<void> {
  const { edits } = await api();
  equal([await run(name, given), edits.said], [true, ""]);
}

function tabs(): string[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs.map((tab) => tab.label));
}

test("a rewrite is shown as a diff, accepted, and undone in one step", async () => {
  const { edits } = await ready();
  const editor = await open(LINES);
  selectLine(editor, 2);
  await propose("rewrite", { instruction: "" });
  equal(tabs().some((label) => label.startsWith("Proposal 1 of ")), true);
  equal(editor.document.getText(), plain(LINES));
  equal(await run("accept"), true);
  equal(editor.document.getText(), BETTER);
  equal(tabs().some((label) => label.startsWith("Proposal")), false);
  equal(edits.preview.current, undefined);
  await vscode.commands.executeCommand("undo");
  equal(editor.document.getText(), plain(LINES));
});

test("the instruction reaches the model, and the proposal can be left", async () => {
  const { edits } = await ready();
  const editor = await open(LINES);
  selectLine(editor, 2);
  await propose("rewrite", { instruction: "by two" });
  const proposed = await until(() => edits.preview.current, "a proposal");
  equal(proposed.candidate.text.includes("size += 2"), true);
  await run("next");
  await run("reject");
  equal(edits.preview.current, undefined);
  equal(editor.document.getText(), plain(LINES));
  selectLine(editor, 2);
  await propose("rewrite", { instruction: "by two" });
  equal(await run("accept"), true);
  equal(editor.document.getText(), RENAMED);
});

test("a named rewrite of the light bulb is shown as a diff, accepted, and undone in one step", async () => {
  await ready();
  const editor = await open(LINES);
  editor.selection = new vscode.Selection(1, 0, 4, 16);
  // The grammar is looked at for a while at the most; VS Code, too, asks again as soon as the cursor moves.
  let titles = "";
  const hints = await until(async () => {
    const listed = await vscode.commands.executeCommand<vscode.CodeAction[]>(
      "vscode.executeCodeActionProvider", editor.document.uri, editor.selection, "refactor.rewrite",
    );
    titles = listed.map((each) => each.title).join();
    return titles === "Rewrite Selection…,Add type hints,Add a docstring" ? listed[1] : undefined;
  }, () => `the named rewrites, not ${titles}`);
  const { command, arguments: given } = hints.command ?? { command: "", arguments: [] };
  await vscode.commands.executeCommand(command, ...(given ?? []));
  await until(() => tabs().some((label) => label.startsWith("Proposal 1 of ")), "a proposal");
  equal(await run("accept"), true);
  equal(editor.document.getText(), HINTED);
  await vscode.commands.executeCommand("undo");
  equal(editor.document.getText(), plain(LINES));
});

test("several selections are rewritten together, and what lies between them stays", async () => {
  await ready();
  const editor = await open(LINES);
  editor.selections = [2, 4].map((line) => {
    const { range } = editor.document.lineAt(line);
    return new vscode.Selection(range.start, range.end);
  });
  await propose("rewrite", { instruction: "", strength: 1 });
  equal(await run("accept"), true);
  equal(editor.document.getText(), BETTER);
});

test("what is missing at several cursors is filled in, in one undo step", async () => {
  await ready();
  const editor = await open(PASSES);
  editor.selections = [2, 6].map((line) => new vscode.Selection(line, 4, line, 4));
  await propose("fill");
  equal(await run("accept"), true);
  equal(editor.document.getText(), PAIR);
  await vscode.commands.executeCommand("undo");
  equal(editor.document.getText(), plain(PASSES));
});

test("proposals can be chosen from", async () => {
  const { edits } = await ready();
  const editor = await open(SHADE, "shade.py");
  selectLine(editor, 1);
  await propose("rewrite", { instruction: "another" });
  const shown = (): string | undefined => edits.preview.current?.candidate.text;
  equal(shown(), "shade = 'red'");
  await run("next");
  equal(shown(), "shade = 'tan'");
  await until(() => tabs().some((label) => label.startsWith("Proposal 2 of 3")), "the second proposal's tab");
  equal(await run("accept"), true);
  equal(editor.document.getText(), "# Shade.\nshade = 'tan'\n");
});

test("the keys of a proposal are its own only while it is in front", async () => {
  await ready();
  const other = (await open(SHADE, "shade.py")).document.uri;
  const editor = await open(LINES);
  selectLine(editor, 2);
  let inFront: unknown;
  const { executeCommand } = vscode.commands;
  const watched: typeof executeCommand = (command, ...given) => {
    inFront = given[0] === "dg-lsp.proposalInFront" ? given[1] : inFront;
    return executeCommand(command, ...given);
  };
  Object.assign(vscode.commands, { executeCommand: watched });
  try {
    await propose("rewrite", { instruction: "" });
    await until(() => inFront === true, "the proposal in front");
    await executeCommand("vscode.diff", editor.document.uri, other, "Another diff", { preview: false });
    await until(() => inFront === false, "another diff in front");
    await run("reject");
    equal(inFront, false);
  } finally {
    Object.assign(vscode.commands, { executeCommand });
  }
});

test("a part of a proposal can be refused, and something else stands there", async () => {
  const { edits } = await ready();
  const editor = await open(SHADE, "shade.py");
  equal(await run("notThis"), false);
  equal(edits.said, "Select on the right side of a proposed rewrite what shall be something else.");
  selectLine(editor, 1);
  await propose("rewrite", { instruction: "another" });
  const proposal = await until(() => {
    const active = vscode.window.activeTextEditor;
    return active?.document.uri.scheme === "dg-lsp-proposal" ? active : undefined;
  }, "the proposal's side");
  const at = proposal.document.positionAt(proposal.document.getText().indexOf("red") + 1);
  proposal.selection = new vscode.Selection(at, at);
  await propose("notThis");
  equal(edits.preview.current?.candidate.text, "shade = 'tan'");
  equal(await run("accept"), true);
  equal(editor.document.getText(), "# Shade.\nshade = 'tan'\n");
});

test("a proposal for a text that changed since is not taken", async () => {
  await ready();
  const editor = await open(LINES);
  selectLine(editor, 2);
  await propose("rewrite", { instruction: "" });
  const edit = new vscode.WorkspaceEdit();
  edit.insert(editor.document.uri, new vscode.Position(0, 0), "# New.\n");
  await vscode.workspace.applyEdit(edit);
  equal(await run("accept"), false);
  equal(editor.document.getText(), `# New.\n${plain(LINES)}`);
});

test("the light bulb offers a rewrite through the extension, and mends", async () => {
  await ready();
  const editor = await open(LINES);
  selectLine(editor, 2);
  const offered = async (only?: string): Promise<vscode.CodeAction[]> =>
    vscode.commands.executeCommand(
      "vscode.executeCodeActionProvider", editor.document.uri, editor.selection, only,
    );
  const rewrite = await until(
    async () => (await offered("refactor")).find(({ title }) => title === "Rewrite Selection…"),
    "the action",
  );
  equal(rewrite.command?.command, "dg-lsp.rewrite");
  const broken = await open(BROKEN, "broken.py");
  const actions: vscode.CodeAction[] = await until(
    () => vscode.commands.executeCommand("vscode.executeCodeActionProvider", broken.document.uri, broken.selection),
    "actions",
  );
  const fix = await until(() => actions.find(({ title }) => title.startsWith("Fix syntax")), "a fix");
  await vscode.commands.executeCommand(fix.command?.command ?? "", ...(fix.command?.arguments ?? []));
  await until(() => broken.document.getText() === plain(BROKEN).replace(", 1\n", ", 1)\n"), "the mended text");
});

test("the light bulb fills in what is empty", async () => {
  await ready();
  const editor = await open(EMPTY_BODY, "empty.py");
  const fill = await until(async () => {
    const offered: vscode.CodeAction[] = await vscode.commands.executeCommand(
      "vscode.executeCodeActionProvider", editor.document.uri, editor.selection,
    );
    return offered.find(({ title }) => title.startsWith("Fill"));
  }, "the action");
  await vscode.commands.executeCommand(fill.command?.command ?? "", ...(fill.command?.arguments ?? []));
  await until(() => editor.document.getText().includes("    return value * 2\n"), "the filled text");
});

test("what is broken is mended and what is empty is filled, after a look", async () => {
  await ready();
  const broken = await open(BROKEN, "broken.py");
  await propose("fix");
  equal(await run("accept"), true);
  equal(broken.document.getText(), plain(BROKEN).replace(", 1\n", ", 1)\n"));
  const empty = await open(EMPTY_BODY, "empty.py");
  await propose("fill");
  equal(await run("accept"), true);
  equal(empty.document.getText().includes("    return value * 2\n"), true);
});

test("the canvas settles beside the lines that it will replace", async () => {
  const { edits } = await api();
  await ready();
  const editor = await open(SLOW, "slow.py");
  selectLine(editor, 1);
  const asked = run("rewrite", { instruction: "", strength: 1 });
  await until(() => edits.canvas.lines.join("").length > 0, "a draft");
  equal([await asked, edits.said], [true, ""]);
  equal(edits.preview.current?.candidate.text.includes("3, 2, 1"), true);
  await run("reject");
});

test("a draft for lines that were deleted meanwhile stands beside what is left", async () => {
  const { edits } = await ready();
  const editor = await open("one\ntwo", "short.py");
  const [draft, canvas] = [{ token: "", step: 0, text: "first\nsecond\nthird" }, edits.canvas];
  canvas.draw(editor, new vscode.Range(1, 0, 7, 0), draft);
  equal(canvas.lines, ["first", "second", "third"]);
  canvas.draw(editor, new vscode.Range(5, 0, 7, 0), draft);
  canvas.end(editor);
});

test("a rewrite that is cancelled ends without a word", async () => {
  const { edits } = await ready();
  const editor = await open(SLOW, "slow.py");
  selectLine(editor, 1);
  edits.said = "";
  const { withProgress } = vscode.window;
  const pressed = new vscode.CancellationTokenSource();
  // Nothing presses a notification's button here.
  const cancellable: typeof withProgress = (options, task) =>
    withProgress(options, (progress) => task(progress, pressed.token));
  Object.assign(vscode.window, { withProgress: cancellable });
  try {
    const asked = run("rewrite", { instruction: "", strength: 1 });
    await until(() => edits.canvas.lines.join("").length > 0, "a draft");
    pressed.cancel();
    equal([await asked, edits.said, edits.preview.current], [false, "", undefined]);
  } finally {
    Object.assign(vscode.window, { withProgress });
  }
});
