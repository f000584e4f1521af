// The channel of the conversation with the server. The client traces where the channel's log level says so; here the
// setting says so as well, as people expect of a language client.
import * as vscode from "vscode";
import { own, SECTION } from "./settings";

export class Trace implements vscode.Disposable {
  private readonly held = vscode.window.createOutputChannel("dg-lsp Trace", { log: true });
  private readonly changes = new vscode.EventEmitter<vscode.LogLevel>();
  private readonly following = [
    this.held.onDidChangeLogLevel(() => this.changes.fire(this.level)),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(`${SECTION}.trace.server`)) {
        this.changes.fire(this.level);
      }
    }),
  ];

  /** For the client. */
  readonly channel = new Proxy(this.held, {
    get: (held, key) => {
      switch (key) {
        case "logLevel":
          return this.level;
        case "onDidChangeLogLevel":
          return this.changes.event;
        case "trace":
          // The channel's own level would drop a trace.
          return (message: string, ...rest: unknown[]) => held.info(message, ...rest);
        default: {
          const value: unknown = Reflect.get(held, key);
          return typeof value === "function" ? value.bind(held) : value;
        }
      }
    },
  });

  dispose(): void {
    for (const one of [...this.following, this.changes, this.held]) {
      one.dispose();
    }
  }

  private get level(): vscode.LogLevel {
    return own("trace.server", "off") === "off" ? this.held.logLevel : vscode.LogLevel.Trace;
  }
}
