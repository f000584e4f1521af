// Small dense matrices.
#include <initializer_list>
#include <stdexcept>
#include <vector>

namespace algebra {

template <typename T>
class Matrix {
public:
    Matrix(std::size_t rows, std::size_t columns, T value = T{})
        : rows_(rows), columns_(columns), cells_(rows * columns, value) {}

    Matrix(std::initializer_list<std::initializer_list<T>> rows) : rows_(rows.size()), columns_(0) {
        for (const auto& row : rows) {
            columns_ = row.size();
            cells_.insert(cells_.end(), row.begin(), row.end());
        }
    }

    T& operator()(std::size_t row, std::size_t column) {
        if (row >= rows_ || column >= columns_) {
            throw std::out_of_range("no such cell");
        }
        return cells_[row * columns_ + column];
    }

    template <typename F>
    auto map(F&& f) const -> Matrix {
        Matrix result(rows_, columns_);
        for (std::size_t i = 0; i < cells_.size(); ++i) {
            result.cells_[i] = f(cells_[i]);
        }
        return result;
    }

    [[nodiscard]] bool square() const noexcept { return rows_ == columns_; }

private:
    std::size_t rows_, columns_;
    std::vector<T> cells_;
};

inline Matrix<double> identity(std::size_t size) {
    Matrix<double> result(size, size);
    for (std::size_t i = 0; i < size; i++) result(i, i) = 1.0;
    auto twice = [factor = 2.0](double x) { return factor * x; };
    return size > 100 ? result.map(twice) : result;
}

}  // namespace algebra
