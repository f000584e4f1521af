// The status bar, its menu, settings.
import * as vscode from "vscode";
import { forServer, own } from "../src/settings";
import { Trace } from "../src/trace";
import { account, equal, open, ready, set, test, until } from "./harness";

test("the status bar says how things stand, and its menu switches", async () => {
  const { bar } = await ready();
  equal(bar.text, "$(sparkle) dg");
  await open("x = 1▮\n");
  const labels = async (): Promise<string[]> => (await bar.entries()).map(({ label }) => label);
  const choose = async (part: string): Promise<unknown> =>
    (await until(async () => (await bar.entries()).find(({ label }) => label.includes(part)), part)).run();
  await choose("Disable for python");
  await choose("Enable for python");
  await choose("Disable everywhere");
  await until(() => bar.status.state === "off", "off");
  equal(bar.text, "$(circle-slash) dg");
  await choose("Enable everywhere");
  await until(() => bar.status.state === "ready", "ready again");
  const offered = await labels();
  for (const part of ["Model", "Download a Model", "Restart Server", "Show Log", "Run Doctor", "Disable in"]) {
    equal([part, offered.some((label) => label.includes(part))], [part, true]);
  }
});

test("what is kept from the model is no switch, and a switch outlives its server", async () => {
  const { bar, server } = await ready();
  await open("KEY=1▮\n", ".env");
  const verb = async (): Promise<string> => (await bar.entries())[0]?.label ?? "";
  await until(async () => (await verb()).includes("Disable everywhere"), "a switch that is on");
  await server.switch({ enabled: false });
  await until(async () => (await verb()).includes("Enable everywhere"), "a switch that is off");
  await server.restart();
  await until(() => server.client, "the server");
  await until(async () => !(await account({})).enabled, "the switch again");
  await server.switch({ enabled: true });
  await ready();
});

test("a changed setting reaches the server", async () => {
  await ready();
  const editor = await open("# Notes▮\n", "notes.md");
  const off = async (): Promise<string | undefined> =>
    (await account({ uri: editor.document.uri.toString() })).document?.off;
  await set("languages", { markdown: false });
  await until(async () => (await off()) === "Suggestions are switched off for markdown.", "the setting");
  await set("languages", {});
  await until(async () => (await off()) === "", "the setting's end");
});

test("the server is told when an ignore file changed", async () => {
  const { server } = await ready();
  const client = await until(() => server.client, "the client");
  const editor = await open("x = 1▮\n", "hidden.py");
  const uri = editor.document.uri;
  const off = async (): Promise<string> => (await account({ uri: uri.toString() })).document?.off ?? "";
  equal(await off(), "");
  const told: string[] = [];
  const middleware = client.middleware.workspace ?? {};
  middleware.didChangeWatchedFile = async (event, next): Promise<void> => {
    told.push(event.uri);
    return next(event);
  };
  const file = vscode.Uri.joinPath(uri, "..", ".dgignore");
  await vscode.workspace.fs.writeFile(file, new TextEncoder().encode("hidden.py\n"));
  await until(() => told.includes(file.toString()), "word of the file");
  await until(async () => (await off()) !== "", "the file's exclusion");
  await vscode.workspace.fs.delete(file);
  await until(async () => (await off()) === "", "its end");
  delete middleware.didChangeWatchedFile;
});

const HOSTILE = { serverPath: "/nowhere/dg-lsp", stats: false };
const SPELLINGS: Record<string, unknown>[] = [
  { ...prefixed(HOSTILE), "dg-lsp.engine.model": "nowhere", "dg-lsp.inline.deadline_ms": 1 },
  { "dg-lsp": { ...HOSTILE, engine: { model: "nowhere" }, inline: { deadline_ms: 1 } } },
  { "dg-lsp.engine": { model: "nowhere" }, "dg-lsp.inline": { deadline_ms: 1 } },
];

test("a workspace sets what it may, and nothing that only the user may, however it is spelled", async () => {
  await ready();
  const userOnly = (): unknown[] => {
    const { engine, inline, stats } = forServer() as Record<string, Record<string, unknown>>;
    return [own("serverPath", ""), engine?.["model"], inline?.["deadline_ms"], stats];
  };
  const maxTokens = (): unknown => (forServer()["context"] as Record<string, unknown>)["max_tokens"];
  const [before, usual] = [userOnly(), maxTokens()];
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri ?? vscode.Uri.file("/");
  const file = vscode.Uri.joinPath(folder, ".vscode", "settings.json");
  for (const [at, spelling] of SPELLINGS.entries()) {
    const text = JSON.stringify({ ...spelling, "dg-lsp.context.max_tokens": 100 + at });
    await vscode.workspace.fs.writeFile(file, new TextEncoder().encode(text));
    await until(() => maxTokens() === 100 + at, "the workspace's settings");
    equal([at, userOnly()], [at, before]);
  }
  await vscode.workspace.fs.delete(file);
  await until(() => maxTokens() === usual, "the settings as they were");
  await ready();
});

function prefixed(settings: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(settings).map(([key, value]) => [`dg-lsp.${key}`, value]));
}

test("commands are there", async () => {
  await ready();
  const known = await vscode.commands.getCommands(true);
  const edits = ["rewrite", "fix", "fill", "accept", "reject", "next"];
  const nextEdits = ["acceptNextEdit", "acceptAllNextEdits", "dismissNextEdit", "askNextEdit"];
  for (const name of [...edits, ...nextEdits, "menu", "restart", "log", "doctor"]) {
    equal([name, known.includes(`dg-lsp.${name}`)], [name, true]);
  }
});

test("what the doctor finds stays to be read", async () => {
  const { doctor } = await ready();
  await vscode.commands.executeCommand("dg-lsp.doctor");
  // The first and the last of what it looks at.
  await until(() => /python/.test(doctor.told) && /fill/.test(doctor.told), () => `what it finds in ${doctor.told}`);
});

test("a file that was too long is served as soon as the setting allows it", async () => {
  const { server } = await ready();
  await set("maxFileBytes", 10);
  await until(() => server.client, "the server");
  const editor = await open("x = 1  # longer than ten bytes▮\n", "long.py");
  await until(() => server.limits.whyOff(editor.document)?.includes("longer"), "the refusal");
  await set("maxFileBytes", undefined);
  await until(() => !server.limits.whyOff(editor.document), "the file's being served");
  await ready();
});

test("the setting decides what is traced", async () => {
  const trace = new Trace();
  const levels: vscode.LogLevel[] = [];
  trace.channel.onDidChangeLogLevel((level) => levels.push(level));
  const quiet = trace.channel.logLevel;
  equal(quiet === vscode.LogLevel.Trace, false);
  await set("trace.server", "verbose");
  await until(() => levels.length === 1, "the change");
  equal([trace.channel.logLevel, levels], [vscode.LogLevel.Trace, [vscode.LogLevel.Trace]]);
  await set("trace.server", "off");
  await until(() => levels.length === 2, "the change back");
  equal(trace.channel.logLevel, quiet);
  trace.dispose();
});
