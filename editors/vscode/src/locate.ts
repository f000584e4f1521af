// Where the server's program is.
import { accessSync, constants, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";

const WINDOWS = process.platform === "win32";
const PROGRAM = WINDOWS ? "dg-lsp.exe" : "dg-lsp";
const FOLDER = WINDOWS ? "Scripts" : "bin";

export interface Places {
  /** The user's setting; empty: none. */
  setting: string;
  /** Workspace folders, none where the workspace is not trusted. */
  folders: readonly string[];
  path: string;
  home: string;
}

export type Found = { program: string } | { missing: string };

export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** A tool of that name on PATH, in whatever folder this process stands. */
function onPath(name: string, path: string): string | undefined {
  return path
    .split(delimiter)
    .filter(isAbsolute)
    .map((folder) => join(folder, name))
    .find(isProgram);
}

/** The setting, else a virtual environment of the workspace, PATH, and where pipx and uv put programs. */
export function locate({ setting, folders, path, home }: Places): Found {
  if (setting) {
    const program = setting.replace(/^~(?=[/\\])/, () => home);
    return isProgram(program)
      ? { program }
      : { missing: `${setting}, the setting dg-lsp.serverPath, can't be run.` };
  }
  const environments = folders.flatMap((folder) =>
    [".venv", "venv"].map((name) => join(folder, name, FOLDER, PROGRAM)),
  );
  const program =
    environments.find(isProgram) ??
    onPath(PROGRAM, path) ??
    [join(home, ".local", "bin", PROGRAM)].find(isProgram);
  return program ? { program } : { missing: "The server dg-lsp was not found on this machine." };
}

export const surroundings = (): Pick<Places, "path" | "home"> => ({
  path: process.env["PATH"] ?? "",
  home: homedir(),
});
