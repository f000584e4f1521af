--- A suggestion as it stands to the text: what is typed of it, what is left, and taking all or a part of it.
local M = {}

---@class dg.Suggestion
---@field text string What would stand in the range
---@field start_row integer
---@field start_col integer
---@field end_row integer
---@field end_col integer Of the range when it was asked for
---@field asked_row integer
---@field asked_col integer The cursor then
---@field command? lsp.Command
---@field client_id integer

---@return integer row
---@return integer col
function M.cursor()
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  return row - 1, col
end

--- What of a suggestion is still to come at the cursor; nil where nothing is, or the text has taken another way.
---@param buf integer
---@param suggestion dg.Suggestion
---@return string?
function M.rest(buf, suggestion)
  local row, col = M.cursor()
  local start_row, start_col = suggestion.start_row, suggestion.start_col
  if row < start_row or (row == start_row and col < start_col) then
    return nil
  end
  local first = vim.api.nvim_buf_get_lines(buf, start_row, start_row + 1, false)[1]
  if not first or #first < start_col then
    return nil
  end
  local lines = vim.api.nvim_buf_get_text(buf, start_row, start_col, row, col, {})
  local typed = table.concat(lines, "\n")
  local left = #suggestion.text > #typed and vim.startswith(suggestion.text, typed)
  return left and suggestion.text:sub(#typed + 1) or nil
end

--- The first word, the first line, or all of a text.
---@param text string
---@param portion "all"|"word"|"line"
---@return string
function M.head(text, portion)
  if portion == "line" then
    return text:match("^\n?[^\n]*")
  elseif portion == "word" then
    return text:match("^%s*[%w_\128-\255]+") or text:match("^%s*[^%w%s_\128-\255]+") or text
  end
  return text
end

--- Where the range ends by now: typing on its line has moved it.
---@param suggestion dg.Suggestion
---@param row integer
---@param col integer
---@return integer row
---@return integer col
local function moved_end(suggestion, row, col)
  if suggestion.end_row ~= row or suggestion.asked_row ~= row then
    return row, col
  end
  local line = vim.api.nvim_get_current_line()
  return row, math.min(#line, math.max(col, suggestion.end_col + col - suggestion.asked_col))
end

--- Put a suggestion, or a part of it, into the current buffer; false where it does not fit any more.
---@param buf integer
---@param suggestion dg.Suggestion
---@param portion "all"|"word"|"line"
---@return boolean
function M.take(buf, suggestion, portion)
  local rest = M.rest(buf, suggestion)
  if not rest then
    return false
  end
  local part = M.head(rest, portion)
  local row, col = M.cursor()
  local end_row, end_col = row, col
  if part == rest then
    end_row, end_col = moved_end(suggestion, row, col)
  end
  local lines = vim.split(part, "\n", { plain = true })
  -- An acceptance can be undone without what was typed before it.
  vim.cmd("let &g:undolevels = &g:undolevels")
  vim.api.nvim_buf_set_text(buf, row, col, end_row, end_col, lines)
  local last = #lines == 1 and col + #lines[1] or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + #lines, last })
  local client = vim.lsp.get_client_by_id(suggestion.client_id)
  if part == rest and suggestion.command and client then
    client:exec_cmd(suggestion.command, { bufnr = buf })
  end
  return true
end

return M
