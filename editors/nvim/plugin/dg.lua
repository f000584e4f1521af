if vim.g.loaded_dg then
  return
end
vim.g.loaded_dg = true

vim.api.nvim_create_user_command("Dg", function(given)
  require("dg.command").run(given)
end, {
  nargs = "+",
  range = true,
  desc = "Fill and rewrite code with dg-lsp",
  complete = function(lead, line)
    return require("dg.command").complete(lead, line)
  end,
})

---@type table<string, [string|string[], string]>
local plugs = {
  ["accept"] = { "i", "require('dg').accept()" },
  ["accept-word"] = { "i", "require('dg').accept('word')" },
  ["accept-line"] = { "i", "require('dg').accept('line')" },
  ["next"] = { "i", "require('dg').next()" },
  ["previous"] = { "i", "require('dg').previous()" },
  ["dismiss"] = { "i", "require('dg').dismiss()" },
  ["toggle"] = { { "n", "i" }, "require('dg').toggle()" },
  ["fill"] = { { "n", "i" }, "require('dg').fill()" },
  ["fix"] = { { "n", "x" }, "require('dg').fix()" },
  ["rewrite"] = { { "n", "x" }, "require('dg').rewrite()" },
  ["next-edit"] = { { "n", "i" }, "require('dg').next_edit()" },
  ["next-edit-all"] = { { "n", "i" }, "require('dg').next_edit_all()" },
  ["next-edit-dismiss"] = { { "n", "i" }, "require('dg').next_edit_dismiss()" },
  ["next-edit-ask"] = { { "n", "i" }, "require('dg').next_edit_ask()" },
  ["edit-accept"] = { "n", "require('dg').edit_accept()" },
  ["edit-reject"] = { "n", "require('dg').edit_reject()" },
  ["edit-next"] = { "n", "require('dg').edit_next()" },
  ["edit-previous"] = { "n", "require('dg').edit_previous()" },
}
for name, plug in pairs(plugs) do
  vim.keymap.set(plug[1], ("<Plug>(dg-%s)"):format(name), ("<Cmd>lua %s<CR>"):format(plug[2]))
end
