// What the server says and is asked beyond the protocol.
import {
  NotificationType,
  RequestType,
  type InlineCompletionTriggerKind,
  type Position,
  type Range,
  type VersionedTextDocumentIdentifier,
  type WorkspaceEdit,
} from "vscode-languageclient/node";

export type StateName = "starting" | "loading" | "ready" | "busy" | "off" | "error";

export interface Status {
  state: StateName;
  percent?: number | null;
  message: string;
  /** Why the last automatic request showed nothing; empty where it showed something. */
  silence?: string;
  /** The place of a workspace match that was shown ("from src/shapes.py:12"); empty where the model wrote it. */
  origin?: string;
  /** The folder that was learnt by what answered last. */
  adapter?: string;
  server?: string;
}

export interface Account extends Status {
  counts: Record<string, number>;
  /** Whether suggestions are switched on for the document that was asked about; without one, everywhere. */
  enabled: boolean;
  document?: { uri: string; off: string };
  engine?: { model: string; device: string } | { error: string };
}

export interface Draft {
  token: string;
  step: number;
  text: string;
}

export interface Candidate {
  text: string;
  confidence: number;
  syntax: string;
  edit: WorkspaceEdit;
}

export interface Proposals {
  version: number;
  candidates: Candidate[];
  message?: string;
}

export interface Switch {
  enabled: boolean;
  language?: string;
  folder?: string;
}

export interface NextEditParams {
  textDocument: VersionedTextDocumentIdentifier;
  position: Position;
  context: { triggerKind: InlineCompletionTriggerKind };
}

export interface LinkedEdit {
  text: string;
  range: Range;
  textDocument: VersionedTextDocumentIdentifier;
}

/** What to tell the server once the edit is accepted. */
export interface Acceptance {
  title: string;
  command: string;
  arguments: [{ edit: number }];
}

export interface NextEdit extends LinkedEdit {
  command: Acceptance;
  /** Further places that follow, in the coordinates of the same version. */
  linked?: LinkedEdit[];
}

export const statusChanged = new NotificationType<Status>("dg/status");
/** A sentence that the user should read once: that a better model is to be had. */
export const advised = new NotificationType<{ message: string }>("dg/advice");
export const drafted = new NotificationType<Draft>("dg/draft");
/** A document whose text the server knows no longer. */
export const reopen = new NotificationType<{ uri: string }>("dg/reopen");
export const askStatus = new RequestType<{ uri?: string; engine?: boolean }, Account, void>("dg/status");
export const setEnabled = new RequestType<Switch, Account, void>("dg/setEnabled");
export const askNextEdit = new RequestType<NextEditParams, { edits: NextEdit[] }, void>("textDocument/copilotInlineEdit");
export const didShowNextEdit = new NotificationType<{ item: { command: Acceptance } }>("textDocument/didShowInlineEdit");
