// Code infilling by a text-diffusion model on the user's own machine.
import * as vscode from "vscode";
import { Doctor } from "./doctor";
import { Edits, type Given } from "./edits";
import { NextEdits } from "./nextEdit";
import { NOT_RUNNING, Server } from "./server";
import { SECTION } from "./settings";
import { StatusBar } from "./status";

/** What tests and other extensions may look at. */
export interface Api {
  server: Server;
  bar: StatusBar;
  edits: Edits;
  nextEdits: NextEdits;
  doctor: Doctor;
}

export function activate(context: vscode.ExtensionContext): Api {
  const server = new Server();
  const bar = new StatusBar(server);
  const edits = new Edits(server, context.globalState);
  const nextEdits = new NextEdits(server);
  const doctor = new Doctor();
  const api = { server, bar, edits, nextEdits, doctor };
  context.subscriptions.push(doctor, nextEdits, edits, bar, server, ...commands(api), ...follow(server));
  void server.start();
  return api;
}

function commands({ server, bar, edits, nextEdits, doctor }: Api): vscode.Disposable[] {
  const all: Record<string, (given?: Given) => unknown> = {
    rewrite: (given) => edits.rewrite(given),
    fix: (given) => edits.fix(given),
    fill: (given) => edits.fill(given),
    accept: () => edits.preview.accept(),
    reject: () => edits.preview.reject(),
    next: () => edits.preview.next(),
    notThis: () => edits.notThis(),
    acceptNextEdit: () => nextEdits.accept(),
    acceptAllNextEdits: () => nextEdits.acceptAll(),
    dismissNextEdit: () => nextEdits.dismiss(),
    askNextEdit: () => nextEdits.ask(),
    enable: () => switchAll(server, true),
    disable: () => switchAll(server, false),
    restart: () => server.restart(),
    log: () => server.log.show(),
    doctor: () => runDoctor(server, doctor),
    pull: () => pull(server),
    menu: () => showMenu(bar),
  };
  return Object.entries(all).map(([name, run]) => vscode.commands.registerCommand(`${SECTION}.${name}`, run));
}

function follow(server: Server): vscode.Disposable[] {
  return [
    vscode.workspace.onDidChangeConfiguration((event) => {
      // To a server that is started again all documents are opened, and judged by their length.
      if (["serverPath", "maxFileBytes"].some((name) => event.affectsConfiguration(`${SECTION}.${name}`))) {
        void server.restart();
      } else if (event.affectsConfiguration(SECTION)) {
        void server.settingsChanged(event);
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      if (!server.client) {
        void server.restart();
      }
    }),
  ];
}

async function showMenu(bar: StatusBar): Promise<void> {
  const chosen = await vscode.window.showQuickPick(bar.entries(), { title: "dg-lsp" });
  await chosen?.run();
}

async function switchAll(server: Server, enabled: boolean): Promise<void> {
  if (!(await server.switch({ enabled }))) {
    void vscode.window.showWarningMessage(NOT_RUNNING);
  }
}

/** Downloads a model; the server shows how far it has come. */
async function pull(server: Server): Promise<void> {
  if (!server.client) {
    void vscode.window.showWarningMessage(NOT_RUNNING);
    return;
  }
  const offered = [
    { label: "coder-1.5b", description: "1.1 GB, Apache-2.0: the better one" },
    { label: "coder-0.5b", description: "491 MB, Apache-2.0: for small machines" },
  ];
  const chosen = await vscode.window.showQuickPick(offered, { title: "Download a model" });
  if (chosen) {
    const given = { command: "dg.pull", arguments: [{ model: chosen.label }] };
    await server.client.sendRequest("workspace/executeCommand", given);
  }
}

function runDoctor(server: Server, doctor: Doctor): void {
  const found = server.locate();
  if ("missing" in found) {
    void vscode.window.showWarningMessage(found.missing);
    return;
  }
  doctor.run(found.program);
}
