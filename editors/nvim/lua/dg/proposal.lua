--- What a buffer would look like after a proposed edit, and the lines that differ.
local M = {}

---@class dg.Candidate
---@field text string
---@field confidence number
---@field syntax string
---@field edit lsp.WorkspaceEdit

---@class dg.Hunk Lines count from 1; a count of 0 is a place behind a line
---@field old_start integer
---@field old_count integer
---@field new_start integer
---@field new_count integer

---@param edit lsp.WorkspaceEdit
---@param uri string
---@return lsp.TextEdit[]
local function edits_of(edit, uri)
  local found = vim.list_extend({}, edit.changes and edit.changes[uri] or {})
  for _, change in ipairs(edit.documentChanges or {}) do
    if change.textDocument and change.textDocument.uri == uri then
      vim.list_extend(found, change.edits)
    end
  end
  return found
end

---@param buf integer
---@param candidate dg.Candidate
---@param encoding string
---@return string[]
function M.lines(buf, candidate, encoding)
  local scratch = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(scratch, 0, -1, false, vim.api.nvim_buf_get_lines(buf, 0, -1, false))
  vim.lsp.util.apply_text_edits(
    edits_of(candidate.edit, vim.uri_from_bufnr(buf)),
    scratch,
    encoding
  )
  local lines = vim.api.nvim_buf_get_lines(scratch, 0, -1, false)
  vim.api.nvim_buf_delete(scratch, { force = true })
  return lines
end

---@param old string[]
---@param new string[]
---@return dg.Hunk[]
function M.hunks(old, new)
  local diff = vim.text.diff or vim.diff
  local found = diff(
    table.concat(old, "\n") .. "\n",
    table.concat(new, "\n") .. "\n",
    { result_type = "indices" }
  )
  return vim.tbl_map(function(hunk)
    return { old_start = hunk[1], old_count = hunk[2], new_start = hunk[3], new_count = hunk[4] }
  end, found --[[@as integer[][] ]])
end

return M
