// Sentences with a button that helps.
import * as vscode from "vscode";
import { installCommand } from "./locate";

const INSTALL = "Install…";
const CHOOSE = "Choose Program…";
const RESTART = "Restart";
const LOG = "Show Log";
const UPGRADE = "Upgrade…";

/** Open a terminal with a command line typed, but not run: it may use the network. */
export function propose(command: string): void {
  const terminal = vscode.window.createTerminal("dg-lsp");
  terminal.show();
  terminal.sendText(command, false);
}

export async function tellMissing(message: string): Promise<void> {
  const chosen = await vscode.window.showWarningMessage(message, INSTALL, CHOOSE);
  if (chosen === INSTALL) {
    propose(installCommand(process.env["PATH"] ?? ""));
  } else if (chosen === CHOOSE) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "dg-lsp.serverPath");
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
    propose(installCommand(process.env["PATH"] ?? "").replace(/ install /, " upgrade "));
  }
}
