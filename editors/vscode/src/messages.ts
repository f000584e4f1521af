// What the server says and is asked beyond the protocol.
import { NotificationType, RequestType, type WorkspaceEdit } from "vscode-languageclient/node";

export type StateName = "starting" | "loading" | "ready" | "busy" | "off" | "error";

export interface Status {
  state: StateName;
  percent?: number | null;
  message: string;
  /** Why the last automatic request showed nothing; empty where it showed something. */
  silence?: string;
  /** Where what it showed stands already ("elsewhere: src/shapes.py:12"); empty where the model wrote it. */
  origin?: string;
  server?: string;
}

export interface Account extends Status {
  counts: Record<string, number>;
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

export const statusChanged = new NotificationType<Status>("dg/status");
export const drafted = new NotificationType<Draft>("dg/draft");
/** A document whose text the server knows no longer. */
export const reopen = new NotificationType<{ uri: string }>("dg/reopen");
export const askStatus = new RequestType<{ uri?: string; engine?: boolean }, Account, void>("dg/status");
export const setEnabled = new RequestType<Switch, Account, void>("dg/setEnabled");
