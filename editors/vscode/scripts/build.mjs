// Bundles the extension and its tests.
import { build } from "esbuild";

const shared = {
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node22",
  external: ["vscode"],
  minify: false,
  logLevel: "warning",
};
await build({ ...shared, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js" });
await build({ ...shared, entryPoints: ["test/index.ts"], outfile: "out/test/index.js" });
