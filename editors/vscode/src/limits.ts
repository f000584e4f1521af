// Documents that are kept from the server: too long, or not on this machine.
import type * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { own } from "./settings";

/** Where documents are that the server serves. */
export const SCHEMES = ["file", "untitled"];

export class Limits {
  private readonly refused = new Set<string>();

  /** A sentence where a document is left alone. */
  whyOff(document: vscode.TextDocument): string | undefined {
    const { scheme } = document.uri;
    if (!SCHEMES.includes(scheme)) {
      return `Only files on this machine are rewritten, and this one (${scheme}:) is none.`;
    }
    return this.refused.has(document.uri.toString())
      ? "This file is longer than the setting dg-lsp.maxFileBytes allows."
      : undefined;
  }

  readonly middleware: Middleware = {
    didOpen: async (document, next) => {
      if (Buffer.byteLength(document.getText()) > own("maxFileBytes", 1_000_000)) {
        this.refused.add(document.uri.toString());
      } else {
        await next(document);
      }
    },
    didChange: async (event, next) => {
      if (!this.whyOff(event.document)) {
        await next(event);
      }
    },
    didClose: async (document, next) => {
      if (!this.refused.delete(document.uri.toString())) {
        await next(document);
      }
    },
    provideInlineCompletionItems: (document, position, context, token, next) =>
      this.whyOff(document) ? [] : next(document, position, context, token),
    provideCodeActions: async (document, range, context, token, next) =>
      this.whyOff(document) ? [] : next(document, range, context, token),
  };
}
