--- Code infilling by a text-diffusion model on your own machine: `require("dg").setup()`.
local M = {}

local function ghost()
  return require(vim.lsp.inline_completion and "dg.ghost.native" or "dg.ghost.own")
end

local function highlights()
  local links = {
    DgHint = "NonText",
    DgWorking = "Visual",
    DgDraft = "Comment",
    DgOld = "DiffDelete",
    DgNew = "DiffAdd",
    DgNextHint = "Search",
  }
  for name, link in pairs(links) do
    vim.api.nvim_set_hl(0, name, { default = true, link = link })
  end
  vim.api.nvim_set_hl(0, "DgStruck", { default = true, strikethrough = true })
end

---@type table<string, lsp.Handler>
local handlers = {
  ["dg/status"] = function(_, status)
    local was = require("dg.status").current.state
    require("dg.status").set(status)
    if status.state == "error" then
      -- Not everybody has a status line that would show it.
      vim.notify_once("dg: " .. status.message, vim.log.levels.WARN)
    end
    if status.state == "ready" and was ~= "ready" and was ~= "busy" then
      ghost().refresh()
    end
  end,
  ["dg/advice"] = function(_, advice)
    require("dg.notify").tell(advice.message .. " Here `:Dg pull` does it.")
  end,
  ["dg/draft"] = function(_, draft)
    require("dg.working").draft(draft)
  end,
  ["dg/reopen"] = function(_, lost, context)
    require("dg.server").reopen(context.client_id, lost.uri)
  end,
}

---@param client vim.lsp.Client
---@param buf integer
---@return string
local function language_of(client, buf)
  return client.get_language_id(buf, vim.bo[buf].filetype)
end

local function follow_server()
  local server = require("dg.server")
  ---@type table<integer, string> Languages of buffers, as the server was told
  local told = {}
  local group = vim.api.nvim_create_augroup("dg", { clear = true })
  vim.api.nvim_create_autocmd("LspAttach", {
    group = group,
    callback = function(event)
      local client = vim.lsp.get_client_by_id(event.data.client_id)
      if client and client.name == server.NAME then
        told[event.buf] = language_of(client, event.buf)
        server.follow(event.buf)
        ghost().attach(client, event.buf)
        require("dg.next_edit").enable(event.buf, true)
      end
    end,
  })
  vim.api.nvim_create_autocmd("LspDetach", {
    group = group,
    callback = function(event)
      local client = vim.lsp.get_client_by_id(event.data.client_id)
      if client and client.name == server.NAME then
        ghost().detach(client, event.buf)
        require("dg.next_edit").enable(event.buf, false)
        if client:is_stopped() then
          require("dg.edit").ended(client)
          if not server.client() then
            require("dg.status").set({ state = "stopped" })
          end
        end
      end
    end,
  })
  -- A buffer that becomes one of another language is opened anew: not every Neovim does so by itself.
  vim.api.nvim_create_autocmd("FileType", {
    group = group,
    callback = function(event)
      for _, client in ipairs(vim.lsp.get_clients({ name = server.NAME, bufnr = event.buf })) do
        if told[event.buf] and told[event.buf] ~= language_of(client, event.buf) then
          server.reopen(client.id, vim.uri_from_bufnr(event.buf))
        end
      end
    end,
  })
  -- Neovim tells servers of a name only when the buffer is written.
  vim.api.nvim_create_autocmd("BufFilePre", {
    group = group,
    callback = function(event)
      require("dg.edit").left(event.buf)
      server.rename(event.buf)
    end,
  })
  -- Writing gives a name without the first of them.
  vim.api.nvim_create_autocmd({ "BufFilePost", "BufWritePost" }, {
    group = group,
    callback = function(event)
      server.look_again(event.buf)
    end,
  })
end

---@param given? table As in |dg-options|
function M.setup(given)
  local config = require("dg.config")
  local before = config.current.settings
  config.set(given)
  local server = require("dg.server")
  if not vim.deep_equal(before, config.current.settings) then
    require("dg.switch").forget()
    server.tell_settings()
  end
  highlights()
  ghost().setup()
  follow_server()
  require("dg.keys").map()
  server.configure(handlers)
  server.start()
end

--- Take the suggestion at the cursor, or its first word or line; false where there is none.
---@param portion? "all"|"word"|"line"
---@return boolean
function M.accept(portion)
  return ghost().accept(portion or "all")
end

function M.next()
  ghost().step(1)
end

function M.previous()
  ghost().step(-1)
end

--- Hide the suggestion; false where there is none.
---@return boolean
function M.dismiss()
  return ghost().dismiss()
end

--- Jump to the next edit, or accept it where the cursor is there; false where none is shown.
---@return boolean
function M.next_edit()
  return require("dg.next_edit").accept()
end

--- Accept the next edit and all that follow from it; false where none is shown.
---@return boolean
function M.next_edit_all()
  return require("dg.next_edit").accept_all()
end

--- Hide the next edit for good; false where none is shown.
---@return boolean
function M.next_edit_dismiss()
  return require("dg.next_edit").dismiss()
end

--- Ask for the next edit now.
function M.next_edit_ask()
  require("dg.next_edit").ask()
end

--- Switch suggestions off and on again: everywhere, for the buffer's language, or in its folder.
---@param scope? "language"|"folder"
function M.toggle(scope)
  require("dg.switch").toggle(scope)
end

--- Rewrite the selection, or the cursor's line. Asks for an instruction where none is given.
---@param instruction? string
---@param place? dg.Place
function M.rewrite(instruction, place)
  place = place or require("dg.place").selection()
  if instruction then
    require("dg.edit").rewrite(place, instruction)
    return
  end
  vim.ui.input({ prompt = "Rewrite so that: " }, function(given)
    if given then
      require("dg.edit").rewrite(place, given)
    end
  end)
end

--- Mend the selection, or what is wrong in the buffer.
function M.fix()
  require("dg.edit").fix(require("dg.place").selection())
end

--- Fill at the cursor.
function M.fill()
  require("dg.edit").fill(require("dg.place").cursor(), false)
end

function M.edit_accept()
  require("dg.preview").accept()
end

--- Leave the proposal, or stop what is under way.
function M.edit_reject()
  require("dg.preview").close()
  require("dg.edit").cancel()
end

function M.edit_next()
  require("dg.preview").step(1)
end

function M.edit_previous()
  require("dg.preview").step(-1)
end

--- A few characters for a status line; lualine takes this function as a component.
---@return string
function M.statusline()
  return require("dg.status").line()
end

return M
