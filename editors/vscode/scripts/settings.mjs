// Puts the server's settings among the extension's own, as the server's schema has them: `npm run settings`.
import { readFileSync, writeFileSync } from "node:fs";

const OWN = {
  "dg-lsp.serverPath": {
    type: "string",
    default: "",
    scope: "machine",
    description: "The server's program. Empty: `dg-lsp` of the workspace's virtual environment, of PATH, or of pipx or uv.",
  },
  "dg-lsp.maxFileBytes": {
    type: "integer",
    default: 1000000,
    minimum: 1,
    description: "Longer files are left alone.",
  },
  "dg-lsp.trace.server": {
    type: "string",
    enum: ["off", "messages", "verbose"],
    default: "off",
    description: "What of the conversation with the server is logged; it holds code.",
  },
};

// What only the user may set VS Code takes from no workspace.
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
