import "./notebooks";
import { runAll } from "./harness";

export const run = runAll;
