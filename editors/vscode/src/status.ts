// The status bar: how things stand, and a menu.
import * as vscode from "vscode";
import { askStatus, type Account, type StateName, type Status, type Switch } from "./messages";
import { chooseModel, tellMissing } from "./remedies";
import type { Server } from "./server";

const ICONS: Record<StateName, string> = {
  starting: "$(loading~spin)",
  loading: "$(loading~spin)",
  ready: "$(sparkle)",
  busy: "$(sync~spin)",
  off: "$(circle-slash)",
  error: "$(warning)",
};

export interface Entry extends vscode.QuickPickItem {
  run: () => unknown;
}

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("dg-lsp", vscode.StatusBarAlignment.Right, 100);
  private readonly following: vscode.Disposable;
  status: Status = { state: "starting", message: "" };

  constructor(private readonly server: Server) {
    this.item.name = "dg-lsp";
    this.item.command = "dg-lsp.menu";
    this.following = server.onStatus((status) => this.show(status));
    this.show(this.status);
    this.item.show();
  }

  get text(): string {
    return this.item.text;
  }

  /** What the menu offers as things stand. */
  entries(): Promise<Entry[]> {
    return entries(this.server);
  }

  dispose(): void {
    this.following.dispose();
    this.item.dispose();
  }

  private show(status: Status): void {
    this.status = status;
    const percent = status.state === "loading" && status.percent != null ? ` ${Math.round(status.percent)}%` : "";
    // Where text goes, if it leaves the machine.
    const server = status.server ? ` → ${status.server.replace(/^\w+:\/\//, "")}` : "";
    this.item.text = `${ICONS[status.state]} dg${percent}${server}`;
    const learnt = status.adapter ? `It has learnt ${status.adapter}.` : "";
    const told = [status.message, status.silence, status.origin, learnt].filter(Boolean).join(" ");
    this.item.tooltip = told || `dg-lsp is ${status.state}.`;
    const color = status.state === "error" ? "statusBarItem.warningBackground" : undefined;
    this.item.backgroundColor = color ? new vscode.ThemeColor(color) : undefined;
  }
}

async function entries(server: Server): Promise<Entry[]> {
  const command = (label: string, name: string, detail = ""): Entry => ({
    label,
    detail,
    run: () => vscode.commands.executeCommand(name),
  });
  const always = [
    command("$(debug-restart) Restart Server", "dg-lsp.restart"),
    command("$(output) Show Log", "dg-lsp.log"),
    command("$(pulse) Run Doctor", "dg-lsp.doctor"),
  ];
  const download = command("$(cloud-download) Download a Model…", "dg-lsp.pull");
  const document = vscode.window.activeTextEditor?.document;
  const asked = document ? { uri: document.uri.toString(), engine: true } : { engine: true };
  const account = await server.client?.sendRequest(askStatus, asked);
  if (!account) {
    const found = server.locate();
    const get = "missing" in found ? [{ label: "$(cloud-download) Get the Server…", run: () => tellMissing(found.missing) }] : [];
    return [...get, ...always];
  }
  const engine = account.engine;
  const model = engine && "model" in engine ? `${engine.model} on ${engine.device}` : (engine?.error ?? "");
  return [...switches(server, account, document), { label: "$(chip) Model", detail: model, run: chooseModel }, download, ...always];
}

function switches(server: Server, account: Account, document?: vscode.TextDocument): Entry[] {
  const enabled = !account.enabled;
  const verb = enabled ? "Enable" : "Disable";
  const entry = (where: string, change: Omit<Switch, "enabled">): Entry => ({
    label: `${enabled ? "$(circle-outline)" : "$(circle-slash)"} ${verb} ${where}`,
    detail: account.document?.off ?? "",
    run: () => server.switch({ enabled, ...change }),
  });
  const folder = document && vscode.workspace.getWorkspaceFolder(document.uri);
  return [
    entry("everywhere", {}),
    ...(document ? [entry(`for ${document.languageId}`, { language: document.languageId })] : []),
    ...(folder ? [entry(`in ${folder.name}`, { folder: folder.uri.toString() })] : []),
  ];
}
