// The language server's life: found, started, started again, and left alone when that does not help.
import * as vscode from "vscode";
import {
  CloseAction,
  DidCloseTextDocumentNotification,
  DidOpenTextDocumentNotification,
  ErrorAction,
  LanguageClient,
  NotebookDocumentSyncRegistrationType,
  State,
  type ErrorHandler,
  type LanguageClientOptions,
} from "vscode-languageclient/node";
import { asksForInstruction } from "./actions";
import { Crashes } from "./crashes";
import { CELL, Limits, SCHEMES } from "./limits";
import { locate, surroundings } from "./locate";
import { advised, drafted, reopen, setEnabled, statusChanged, type Draft, type Status, type Switch } from "./messages";
import { tellAdvice, tellMissing, tellOutdated, tellStopped, tellTrouble } from "./remedies";
import { forServer, own, SECTION } from "./settings";
import { Trace } from "./trace";
import { isOutdated } from "./version";

/** Nobody waits longer for a server to start before it is started again. */
const HUNG_MS = 20_000;

export const NOT_RUNNING = "The server is not running; the menu in the status bar starts it again.";

export class Server implements vscode.Disposable {
  readonly log = vscode.window.createOutputChannel("dg-lsp", { log: true });
  readonly limits = new Limits();
  private readonly trace = new Trace();
  private readonly crashes = new Crashes();
  /** What was switched by hand, for a server that starts again; by what it is about. */
  private readonly switched = new Map<string, Switch>();
  private readonly statuses = new vscode.EventEmitter<Status>();
  private readonly drafts = new vscode.EventEmitter<Draft>();
  /** What these files say counts from then on; the server itself looks at them now and then. */
  private readonly watcher = vscode.workspace.createFileSystemWatcher("**/{dg-lsp.toml,.dgignore,.gitignore}");
  private held: LanguageClient | undefined;
  private turn = Promise.resolve();
  private readonly told = new Set<string>();

  readonly onStatus = this.statuses.event;
  readonly onDraft = this.drafts.event;

  /** The running client; undefined where none runs. */
  get client(): LanguageClient | undefined {
    return this.held?.state === State.Running ? this.held : undefined;
  }

  /** The program that was found for the workspace as it is. */
  locate(): ReturnType<typeof locate> {
    const folders = vscode.workspace.isTrusted
      ? (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath)
      : [];
    return locate({ setting: own("serverPath", ""), folders, ...surroundings() });
  }

  start(): Promise<void> {
    return this.inTurn(() => this.begin());
  }

  restart(): Promise<void> {
    return this.inTurn(async () => {
      this.crashes.forget();
      await this.stop();
      await this.begin();
    });
  }

  private async begin(): Promise<void> {
    const found = this.locate();
    if ("missing" in found) {
      this.tell({ state: "error", message: found.missing });
      void tellMissing(found.missing);
      return;
    }
    this.tell({ state: "starting", message: "" });
    const run = { command: found.program, args: ["serve"] };
    const client = new LanguageClient(SECTION, "dg-lsp", { run, debug: run }, this.options());
    client.registerFeature({
      fillClientCapabilities: (capabilities) => {
        capabilities.experimental = { ...(capabilities.experimental as object), dgStatus: true, dgReopen: true };
      },
      initialize: () => {},
      getState: () => ({ kind: "static" }),
      clear: () => {},
    });
    client.onNotification(statusChanged, (status) => {
      this.tell(status);
      this.tellOnce(status);
    });
    client.onNotification(advised, ({ message }) => void tellAdvice(message));
    client.onNotification(drafted, (draft) => this.drafts.fire(draft));
    client.onNotification(reopen, ({ uri }) => sendAgain(client, uri));
    this.held = client;
    try {
      await client.start();
      await this.checkVersion(client);
      if (this.client === client) {
        this.switchAgain(client);
        // After a crash, too.
        client.onDidChangeState(({ newState }) => newState === State.Running && this.switchAgain(client));
      }
    } catch (error) {
      this.tell({ state: "error", message: `The server did not start: ${String(error)}` });
      this.log.error(String(error));
    }
  }

  async stop(): Promise<void> {
    const client = this.held;
    this.held = undefined;
    if (client?.needsStop()) {
      await client.stop().catch((error: unknown) => this.log.warn(String(error)));
    }
    await client?.dispose().catch(() => {});
  }

  /** A client that is starting can't be stopped, and what it registers then is in the next one's way. */
  private inTurn(step: () => Promise<void>): Promise<void> {
    const hung = new Promise<void>((resolve) => setTimeout(resolve, HUNG_MS));
    const done = Promise.race([this.turn, hung]).then(step);
    this.turn = done.catch(() => {});
    return done;
  }

  /** Switch suggestions on or off; false where no server runs. */
  async switch(change: Switch): Promise<boolean> {
    const account = await this.client?.sendRequest(setEnabled, change);
    if (account) {
      this.switched.set(`${change.language ?? ""}\n${change.folder ?? ""}`, change);
    }
    return account !== undefined;
  }

  private switchAgain(client: LanguageClient): void {
    for (const change of this.switched.values()) {
      client.sendRequest(setEnabled, change).catch((error: unknown) => this.log.warn(String(error)));
    }
  }

  /** Let the server fetch the settings anew. What they say of what was switched by hand counts from now on, there, too. */
  async settingsChanged(event: vscode.ConfigurationChangeEvent): Promise<void> {
    if (event.affectsConfiguration(`${SECTION}.enabled`) || event.affectsConfiguration(`${SECTION}.languages`)) {
      this.switched.clear();
    }
    await this.client?.sendNotification("workspace/didChangeConfiguration", { settings: { [SECTION]: forServer() } });
  }

  dispose(): void {
    void this.inTurn(() => this.stop());
    for (const held of [this.log, this.trace, this.statuses, this.drafts, this.watcher]) {
      held.dispose();
    }
  }

  /** What is wrong with the engine is told once: a colour at the edge of the window is easily missed. */
  private tellOnce({ state, message }: Status): void {
    if (state === "error" && !this.told.has(message)) {
      this.told.add(message);
      void tellTrouble(message);
    }
  }

  private tell(status: Status): void {
    this.statuses.fire(status);
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: [...SCHEMES, CELL].map((scheme) => ({ scheme })),
      synchronize: { fileEvents: this.watcher },
      outputChannel: this.log,
      traceOutputChannel: this.trace.channel,
      initializationOptions: forServer(),
      errorHandler: this.errorHandler(),
      middleware: {
        ...this.limits.middleware,
        provideCodeActions: async (document, range, context, token, next) =>
          this.limits.whyOff(document)
            ? []
            : asksForInstruction((await next(document, range, context, token)) ?? [], document, range),
        workspace: {
          configuration: (params) => params.items.map((item) => (item.section === SECTION ? forServer() : null)),
        },
      },
    };
  }

  private errorHandler(): ErrorHandler {
    return {
      error: () => ({ action: ErrorAction.Continue }),
      closed: () => {
        if (this.crashes.happened(Date.now())) {
          return { action: CloseAction.Restart, handled: true };
        }
        const message = `The server ended ${this.crashes.count} times by itself.`;
        this.tell({ state: "error", message });
        void tellStopped(message);
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    };
  }

  private async checkVersion(client: LanguageClient): Promise<void> {
    const version = client.initializeResult?.serverInfo?.version;
    if (isOutdated(version)) {
      const message = `dg-lsp ${version ?? "(unknown)"} is too old for this extension.`;
      await this.stop();
      this.tell({ state: "error", message });
      void tellOutdated(message);
    }
  }
}

/** Send a document or notebook anew, of whose text the server has lost track. */
async function sendAgain(client: LanguageClient, uri: string): Promise<void> {
  const convert = client.code2ProtocolConverter;
  const notebook = vscode.workspace.notebookDocuments.find((held) => convert.asUri(held.uri) === uri);
  const cell = notebook?.getCells()[0];
  const sync = cell && client.getFeature(NotebookDocumentSyncRegistrationType.method).getProvider(cell);
  if (notebook && sync) {
    await Promise.all([sync.sendDidCloseNotebookDocument(notebook), sync.sendDidOpenNotebookDocument(notebook)]);
    return;
  }
  const document = vscode.workspace.textDocuments.find((held) => convert.asUri(held.uri) === uri);
  if (document) {
    // Both at once: a change between them would be in the text already.
    await Promise.all([
      client.sendNotification(DidCloseTextDocumentNotification.type, convert.asCloseTextDocumentParams(document)),
      client.sendNotification(DidOpenTextDocumentNotification.type, convert.asOpenTextDocumentParams(document)),
    ]);
  }
}
