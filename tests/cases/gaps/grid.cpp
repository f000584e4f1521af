#include <map>
#include <vector>
template <typename T, template <typename> class V = std::vector>
class Grid {
 public:
  explicit Grid(std::vector<std::vector<T>> rows) : rows_(std::move(rows)) {}
  auto at(std::size_t x, std::size_t y) const -> const T& { return rows_[y][x]; }
  std::map<std::string, std::vector<std::pair<int, int>>> index(bool (*keep)(const T&)) const {
    std::map<std::string, std::vector<std::pair<int, int>>> found;
    for (std::size_t y = 0; y < rows_.size(); ++y)
      for (std::size_t x = 0; x < rows_[y].size() >> 1; ++x)
        if (keep(at(x, y))) found[std::to_string(x)].push_back({static_cast<int>(x), static_cast<int>(y)});
    return found;
  }
  int sum() const {
    int total = 0;
    auto add = [&total](const T& each) -> void { total += each->value > 0 ? each->value : '('; };
    for (const auto& row : rows_) std::for_each(row.begin(), row.end(), add);
    return total;
  }
 private:
  std::vector<std::vector<T>> rows_;
};
