// Code infilling by a text-diffusion model on the user's own machine.
import * as vscode from "vscode";
import { Edits, type Given } from "./edits";
import { NextEdits } from "./nextEdit";
import { Server } from "./server";
import { SECTION } from "./settings";
import { StatusBar } from "./status";

/** What tests and other extensions may look at. */
export interface Api {
  server: Server;
  bar: StatusBar;
  edits: Edits;
  nextEdits: NextEdits;
}

export function activate(context: vscode.ExtensionContext): Api {
  const server = new Server();
  const bar = new StatusBar(server);
  const edits = new Edits(server, context.globalState);
  const nextEdits = new NextEdits(server);
  const api = { server, bar, edits, nextEdits };
  context.subscriptions.push(nextEdits, edits, bar, server, ...commands(api), ...follow(server));
  void server.start();
  return api;
}

function commands({ server, bar, edits, nextEdits }: Api): vscode.Disposable[] {
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
    enable: () => server.switch({ enabled: true }),
    disable: () => server.switch({ enabled: false }),
    restart: () => server.restart(),
    log: () => server.log.show(),
    doctor: () => runDoctor(server),
    menu: () => showMenu(bar),
  };
  return Object.entries(all).map(([name, run]) => vscode.commands.registerCommand(`${SECTION}.${name}`, run));
}

function follow(server: Server): vscode.Disposable[] {
  return [
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(`${SECTION}.serverPath`)) {
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

function runDoctor(server: Server): void {
  const found = server.locate();
  if ("missing" in found) {
    void vscode.window.showWarningMessage(found.missing);
    return;
  }
  vscode.window.createTerminal({ name: "dg-lsp doctor", shellPath: found.program, shellArgs: ["doctor"] }).show();
}
