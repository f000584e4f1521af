// Documents that are kept from the server: too long, or not on this machine.
import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { own } from "./settings";

/** Where documents are that the server serves. */
export const SCHEMES = ["file", "untitled"];
/** Of a notebook's cells; their path is the notebook's. */
export const CELL = "vscode-notebook-cell";

/** The notebook that a document is a cell of. */
export function notebookOf({ uri }: vscode.TextDocument): vscode.NotebookDocument | undefined {
  return uri.scheme === CELL
    ? vscode.workspace.notebookDocuments.find(
        (held) => held.uri.path === uri.path && held.getCells().some((cell) => cell.document.uri.toString() === uri.toString()),
      )
    : undefined;
}

export class Limits {
  private readonly refused = new Set<string>();

  /** A sentence where a document, or the notebook that it is a cell of, is left alone. */
  whyOff(document: vscode.TextDocument): string | undefined {
    return this.whyFileOff((notebookOf(document) ?? document).uri);
  }

  readonly middleware: Middleware = {
    didOpen: async (document, next) => {
      if (!this.refuse(document.uri, [document])) {
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
    notebooks: {
      didOpen: async (notebook, cells, next) => {
        if (!this.refuse(notebook.uri, cells.map((cell) => cell.document)) && !this.whyFileOff(notebook.uri)) {
          await next(notebook, cells);
        }
      },
      didChange: async (event, next) => {
        if (!this.whyFileOff(event.notebook.uri)) {
          await next(event);
        }
      },
      didClose: async (notebook, cells, next) => {
        const off = this.whyFileOff(notebook.uri);
        this.refused.delete(notebook.uri.toString());
        if (!off) {
          await next(notebook, cells);
        }
      },
    },
    provideInlineCompletionItems: (document, position, context, token, next) =>
      this.whyOff(document) ? [] : next(document, position, context, token),
  };

  /** Whether a file is too long to be taken in. */
  private refuse(uri: vscode.Uri, documents: vscode.TextDocument[]): boolean {
    const nbytes = documents.reduce((sum, held) => sum + Buffer.byteLength(held.getText()), 0);
    const tooLong = nbytes > own("maxFileBytes", 1_000_000);
    if (tooLong) {
      this.refused.add(uri.toString());
    } else {
      // To a server that is started again all is opened that nobody has closed, and it may be shorter by now.
      this.refused.delete(uri.toString());
    }
    return tooLong;
  }

  private whyFileOff(uri: vscode.Uri): string | undefined {
    if (!SCHEMES.includes(uri.scheme)) {
      return `Only files on this machine are rewritten, and this one (${uri.scheme}:) is none.`;
    }
    return this.refused.has(uri.toString())
      ? "This file is longer than the setting dg-lsp.maxFileBytes allows."
      : undefined;
  }
}
