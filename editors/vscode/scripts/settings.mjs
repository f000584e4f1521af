// Copies the server's settings from its schema into the extension's manifest: `npm run settings`.
import { readFileSync, writeFileSync } from "node:fs";

const OWN = {
  "dg-lsp.serverPath": {
    type: "string",
    default: "",
    scope: "machine",
    description: "Path of `dg-lsp`. Empty: from the workspace's virtual environment, PATH, pipx or uv.",
  },
  "dg-lsp.maxFileBytes": {
    type: "integer",
    default: 1000000,
    minimum: 1,
    description: "Files longer than this get no suggestions.",
  },
  "dg-lsp.trace.server": {
    type: "string",
    enum: ["off", "messages", "verbose"],
    default: "off",
    description: "How much of the messages to and from the server is logged. The log holds code.",
  },
};

// VS Code ignores machine-scoped settings in a workspace.
function scoped({ userOnly, ...held }) {
  return userOnly ? { ...held, scope: "machine" } : held;
}

function flat(properties, prefix) {
  return Object.entries(properties).flatMap(([key, held]) =>
    held.properties ? flat(held.properties, `${prefix}.${key}`) : [[`${prefix}.${key}`, scoped(held)]],
  );
}

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
const schema = read("../../../dg_lsp/settings.schema.json");
const manifest = read("../package.json");
manifest.contributes.configuration.properties = { ...OWN, ...Object.fromEntries(flat(schema.properties, "dg-lsp")) };
writeFileSync(new URL("../package.json", import.meta.url), `${JSON.stringify(manifest, null, 2)}\n`);
