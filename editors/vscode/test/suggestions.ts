// Ghost text, from the oracle of the Python tests.
import * as vscode from "vscode";
import { account, equal, open, ready, take, test, until } from "./harness";

const ADD = "def add(a, b):\n    return ▮a + b▮\n";
const BODY = "def total(items):\n    ▮result = 0\n    for item in items:\n        result += item\n    return result\n▮";
const ASTRAL = "face = '😋' + ▮mouth▮\n";
const whole = (marked: string): string => marked.replaceAll("▮", "");
const COMMIT = "editor.action.inlineSuggest.commit";

test("a suggestion is taken whole, and undone at once", async () => {
  await ready();
  const editor = await open(ADD);
  await take(editor, COMMIT, whole(ADD));
  await vscode.commands.executeCommand("undo");
  equal(editor.document.getText(), "def add(a, b):\n    return \n");
});

test("a word is taken, then the rest", async () => {
  await ready();
  const editor = await open(BODY);
  await take(editor, "editor.action.inlineSuggest.acceptNextWord", "def total(items):\n    result");
  await take(editor, COMMIT, whole(BODY));
});

test("a line is taken", async () => {
  await ready();
  const editor = await open(BODY);
  // Where a suggestion of one line comes first, no line break is taken with it.
  await take(editor, "editor.action.inlineSuggest.acceptNextLine", /^def total\(items\):\n    result = 0\n?$/);
});

test("positions are counted in UTF-16", async () => {
  await ready();
  const editor = await open(ASTRAL);
  await take(editor, COMMIT, whole(ASTRAL));
});

test("typing along needs no model", async () => {
  await ready();
  const editor = await open(ADD);
  await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
  const counts = async (): Promise<Record<string, number>> =>
    (await account()).counts;
  await until(async () => ((await counts())["requests"] ?? 0) > 0, "a request");
  await take(editor, "editor.action.inlineSuggest.acceptNextWord", "def add(a, b):\n    return a\n");
  const before = await counts();
  for (const character of " + ") {
    await vscode.commands.executeCommand("type", { text: character });
  }
  await until(async () => ((await counts())["without_model"] ?? 0) > (before["without_model"] ?? 0), "a rest");
  equal((await counts())["sent"], before["sent"]);
  await take(editor, COMMIT, whole(ADD));
});

test("others are a key away", async () => {
  await ready();
  const editor = await open("colour = ▮red▮\n");
  await until(async () => {
    await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
    await vscode.commands.executeCommand("editor.action.inlineSuggest.showNext");
    await new Promise((resolve) => setTimeout(resolve, 500));
    await vscode.commands.executeCommand(COMMIT);
    if (/= (green|blue|grey)\n/.test(editor.document.getText())) {
      return true;
    }
    if (editor.document.getText().includes("red")) {
      await vscode.commands.executeCommand("undo");
    }
    return false;
  }, "another suggestion");
});

test("an engine that is killed comes back", async () => {
  await ready();
  const pid = async (): Promise<number | undefined> =>
    ((await account({ engine: true })).engine as { pid?: number } | undefined)?.pid;
  const first = await until(pid, "the engine");
  process.kill(first, "SIGKILL");
  const editor = await open(ADD);
  await take(editor, COMMIT, whole(ADD));
  equal((await pid()) !== first, true);
});
