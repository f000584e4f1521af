--- What a buffer would look like after a proposed edit, and the lines that differ.
local M = {}

---@class dg.Candidate
---@field text string
---@field confidence number
---@field syntax string
---@field edit lsp.WorkspaceEdit

---@class dg.Hunk Lines count from 1; a count of 0 is a place after a line
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

--- The lines that an edit brings, by their numbers, which count from 1.
---@param buf integer
---@param candidate dg.Candidate
---@param encoding string
---@return table<integer, string>
local function coming(buf, candidate, encoding)
  local lines, found = M.lines(buf, candidate, encoding), {}
  for _, hunk in ipairs(M.hunks(vim.api.nvim_buf_get_lines(buf, 0, -1, false), lines)) do
    for number = hunk.new_start, hunk.new_start + hunk.new_count - 1 do
      found[number] = lines[number]
    end
  end
  return found
end

---@param line string
---@param at integer
---@return boolean
local function is_word(line, at)
  return line:sub(at, at):match("[%w_\128-\255]") ~= nil
end

--- Where a text stands in the lines that an edit brings, as whole words; positions are those after the edit.
---@param buf integer
---@param candidate dg.Candidate
---@param encoding string
---@param text string
---@return lsp.Range[]
function M.ranges(buf, candidate, encoding, text)
  -- Nothing is found everywhere.
  if text == "" then
    return {}
  end
  local found = {}
  for number, line in pairs(coming(buf, candidate, encoding)) do
    local function position(col)
      return { line = number - 1, character = vim.str_utfindex(line, encoding, col, false) }
    end
    local first, last = line:find(text, 1, true)
    while first do
      local within = is_word(line, first - 1) and is_word(line, first)
        or is_word(line, last) and is_word(line, last + 1)
      if not within then
        found[#found + 1] = { start = position(first - 1), ["end"] = position(last) }
      end
      first, last = line:find(text, last + 1, true)
    end
  end
  return found
end

---@param buf integer
---@param candidate dg.Candidate
---@param encoding string
---@return string[]
function M.words(buf, candidate, encoding)
  local found = {}
  for _, line in pairs(coming(buf, candidate, encoding)) do
    for word in line:gmatch("[%w_\128-\255]+") do
      found[word] = true
    end
  end
  return vim.tbl_keys(found)
end

return M
