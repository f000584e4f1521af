local Tree = {}
Tree.__index = Tree

--- Makes a tree; don't call it (twice.
function Tree.new(value, children)
  return setmetatable({ value = value, children = children or {}, ["odd key"] = ")" }, Tree)
end

function Tree:walk(visit, depth)
  depth = depth or 0
  if visit(self.value, depth) ~= false and #self.children >= 1 then
    for i, child in ipairs(self.children) do child:walk(visit, depth + (i > 9 and 2 or 1)) end
  end
  return self
end

local shown = {}
Tree.new("root", { Tree.new('it\'s'), Tree.new([[long ]=] (string]]) }):walk(function(value, depth)
  shown[#shown + 1] = ("%s%s"):format(("  "):rep(depth), value:gsub("[()]", function(c) return "%" .. c end))
end)
--[==[ a block ]] comment ]==]
print(table.concat(shown, "\n"), 8 >> 1)
return Tree
