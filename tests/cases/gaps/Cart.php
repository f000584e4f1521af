<?php
namespace Shop;

final class Cart implements \Countable
{
    /** @var array<string, array{name: string, price: float}> */
    private array $items = [];

    public function __construct(private readonly ?Clock $clock = null) {}

    public function add(string $name, float $price, int ...$counts): static
    {
        $this->items[$name] ??= ['name' => "({$name})", 'price' => $price];
        $total = array_sum(array_map(fn(int $n): float => $n * $price, $counts));
        return $total >= 1 ? $this : throw new \LogicException("It's {$this->items[$name]['name']}->empty");
    }

    public function count(): int { return count($this->items) >> 1; }

    public function names(): array
    {
        # don't (trim
        return array_keys(array_filter($this->items, static fn($item) => preg_match('/[)\]]/', $item['name']) > 0));
    }
}
