// What `dg-lsp doctor` finds. A terminal of its own would be gone with its last line.
import { spawn, type ChildProcess } from "node:child_process";
import * as vscode from "vscode";

export class Doctor implements vscode.Disposable {
  private readonly channel = vscode.window.createOutputChannel("dg-lsp doctor");
  private running: ChildProcess | undefined;
  /** What it has said so far. */
  told = "";

  run(program: string): void {
    this.running?.kill();
    this.told = "";
    this.channel.clear();
    this.channel.show(true);
    const child = spawn(program, ["doctor"], { stdio: ["ignore", "pipe", "pipe"], windowsHide: true });
    this.running = child;
    const tell = (text: string): void => {
      if (this.running === child) {
        this.told += text;
        this.channel.append(text);
      }
    };
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", tell);
    }
    child.on("error", (error) => tell(`${program} can't be run: ${error.message}\n`));
  }

  dispose(): void {
    this.running?.kill();
    this.running = undefined;
    this.channel.dispose();
  }
}
