--- A suggestion as it stands to the text: what is typed of it, what is left, and taking all or a part of it.
local M = {}

---@class dg.Suggestion
---@field text string What would stand from the start on
---@field start_row integer
---@field start_col integer
---@field suffix string The text after the cursor on its line when it was requested
---@field replaces integer Bytes of that in whose place the text would stand, too
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
---@return integer? replaces Bytes after the cursor that it replaces
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
  local suffix = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]:sub(col + 1)
  if not vim.startswith(suggestion.text, typed) or not vim.endswith(suffix, suggestion.suffix) then
    return nil
  end
  local rest = suggestion.text:sub(#typed + 1)
  -- An editor closes brackets by itself: what was typed along opened them, and the suggestion closes them, too.
  local closed = suffix:sub(1, #suffix - #suggestion.suffix)
  if #rest == #closed or not vim.endswith(rest, closed) then
    return nil
  end
  return rest, #closed + suggestion.replaces
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

--- Put a suggestion, or a part of it, into the current buffer; false where it does not fit any more.
---@param buf integer
---@param suggestion dg.Suggestion
---@param portion "all"|"word"|"line"
---@return boolean
function M.take(buf, suggestion, portion)
  local rest, replaces = M.rest(buf, suggestion)
  if not rest then
    return false
  end
  local part = M.head(rest, portion)
  local row, col = M.cursor()
  local end_col = part == rest and col + replaces or col
  local lines = vim.split(part, "\n", { plain = true })
  -- An acceptance can be undone without what was typed before it.
  vim.cmd("let &g:undolevels = &g:undolevels")
  vim.api.nvim_buf_set_text(buf, row, col, row, end_col, lines)
  local last = #lines == 1 and col + #lines[1] or #lines[#lines]
  vim.api.nvim_win_set_cursor(0, { row + #lines, last })
  local client = vim.lsp.get_client_by_id(suggestion.client_id)
  if part == rest and suggestion.command and client then
    client:exec_cmd(suggestion.command, { bufnr = buf })
  end
  return true
end

return M
