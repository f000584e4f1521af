// Sentences with a button that helps.
import * as vscode from "vscode";

const INSTALL = "Install…";
const CHOOSE = "Choose Program…";
const RESTART = "Restart";
const LOG = "Show Log";
const UPGRADE = "Upgrade…";
const DOWNLOAD = "Download a Model…";
const MODEL = "Choose Model…";
const DOCTOR = "Run Doctor";

/** How the server is installed from a clone, until there is a release: the first page of the walkthrough. */
async function showSetUp(): Promise<void> {
  await vscode.commands.executeCommand("workbench.action.openWalkthrough", "dg-lsp.dg-lsp#start");
}

export async function tellMissing(message: string): Promise<void> {
  const chosen = await vscode.window.showWarningMessage(message, INSTALL, CHOOSE);
  if (chosen === INSTALL) {
    await showSetUp();
  } else if (chosen === CHOOSE) {
    await openSetting("serverPath");
  }
}

export async function tellStopped(message: string): Promise<void> {
  const chosen = await vscode.window.showErrorMessage(message, RESTART, LOG);
  if (chosen) {
    await vscode.commands.executeCommand(chosen === RESTART ? "dg-lsp.restart" : "dg-lsp.log");
  }
}

export async function tellOutdated(message: string): Promise<void> {
  const chosen = await vscode.window.showErrorMessage(message, UPGRADE);
  if (chosen) {
    await showSetUp();
  }
}

export async function tellTrouble(message: string): Promise<void> {
  const chosen = await vscode.window.showWarningMessage(message, MODEL, DOCTOR);
  if (chosen) {
    await (chosen === MODEL ? chooseModel() : vscode.commands.executeCommand("dg-lsp.doctor"));
  }
}

export async function tellAdvice(message: string): Promise<void> {
  if (await vscode.window.showInformationMessage(message, DOWNLOAD)) {
    await vscode.commands.executeCommand("dg-lsp.pull");
  }
}

export function chooseModel(): Thenable<unknown> {
  return openSetting("engine.model");
}

/** Where a setting of scope "machine" can be changed: of a window on another machine, on a page of its own. */
function openSetting(name: string): Thenable<unknown> {
  const page = vscode.env.remoteName === undefined ? "openSettings" : "openRemoteSettings";
  return vscode.commands.executeCommand(`workbench.action.${page}`, { query: `dg-lsp.${name}` });
}
