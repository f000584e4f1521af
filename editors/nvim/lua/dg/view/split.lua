--- A proposed edit as a diff in a split.
local M = {}

---@type { buf: integer, win: integer, scratch: integer }?
local open

local function leave()
  local held = open
  open = nil
  if held and vim.api.nvim_win_is_valid(held.win) then
    vim.api.nvim_win_call(held.win, vim.cmd.diffoff)
  end
end

---@param buf integer In a window of this tab
---@return integer scratch
local function split(buf)
  local win = vim.fn.bufwinid(buf)
  local scratch = vim.api.nvim_create_buf(false, true)
  vim.bo[scratch].bufhidden = "wipe"
  vim.bo[scratch].filetype = vim.bo[buf].filetype
  vim.api.nvim_open_win(scratch, false, { split = "right", win = win })
  open = { buf = buf, win = win, scratch = scratch }
  vim.api.nvim_win_call(win, vim.cmd.diffthis)
  vim.api.nvim_win_call(vim.fn.bufwinid(scratch), vim.cmd.diffthis)
  -- Whoever closes the diff leaves the proposal, which can't be seen any more.
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = scratch,
    callback = function()
      if open and open.scratch == scratch then
        leave()
        require("dg.preview").close()
      end
    end,
  })
  return scratch
end

---@param buf integer
---@param lines string[] The buffer's, after the edit
---@param footer string
function M.show(buf, lines, footer)
  local held = open and open.buf == buf and vim.api.nvim_buf_is_valid(open.scratch)
  local scratch = held and open.scratch or split(buf)
  vim.bo[scratch].modifiable = true
  vim.api.nvim_buf_set_lines(scratch, 0, -1, false, lines)
  vim.bo[scratch].modifiable = false
  vim.wo[vim.fn.win_findbuf(scratch)[1]].winbar = footer:gsub("%%", "%%%%")
  vim.cmd.diffupdate()
end

---@param buf integer
function M.close(buf)
  if not open or open.buf ~= buf then
    return
  end
  local scratch = open.scratch
  leave()
  if vim.api.nvim_buf_is_valid(scratch) then
    vim.api.nvim_buf_delete(scratch, { force = true })
  end
end

return M
