// What the extension host runs in place of a user.
import "./suggestions";
import "./notebooks";
import "./switches";
import "./edits";
import "./badDays";
import { runAll } from "./harness";

export const run = runAll;
