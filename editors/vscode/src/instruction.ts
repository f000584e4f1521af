// Asking what a rewrite shall do, with what was asked before a key away.
import * as vscode from "vscode";

const KEY = "instructions";
const MOST = 20;

export async function remember(memory: vscode.Memento, instruction: string): Promise<void> {
  const before = memory.get<string[]>(KEY, []).filter((held) => held !== instruction);
  await memory.update(KEY, [instruction, ...before].slice(0, MOST));
}

/** The instruction, which may be empty; undefined where the user turned away. */
export function askInstruction(memory: vscode.Memento): Promise<string | undefined> {
  const box = vscode.window.createQuickPick();
  const before = memory.get<string[]>(KEY, []).map((label) => ({ label, iconPath: new vscode.ThemeIcon("history") }));
  box.title = "Rewrite Selection";
  box.placeholder = "What shall change? Empty: write it anew.";
  const offer = (): void => {
    const typed = { label: box.value, description: box.value ? "" : "without an instruction", alwaysShow: true };
    box.items = [typed, ...before.filter(({ label }) => label !== box.value)];
  };
  offer();
  return new Promise((resolve) => {
    box.onDidChangeValue(offer);
    box.onDidAccept(() => {
      resolve(box.selectedItems[0]?.label ?? box.value);
      box.dispose();
    });
    box.onDidHide(() => {
      resolve(undefined);
      box.dispose();
    });
    box.show();
  });
}
