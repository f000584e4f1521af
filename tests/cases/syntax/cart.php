<?php

declare(strict_types=1);

namespace Shop;

use InvalidArgumentException;

final class Cart
{
    private array $items = [];

    public function __construct(private string $currency = 'EUR', private ?int $limit = null)
    {
    }

    public function add(string $name, float $price, int $count = 1): self
    {
        if ($count < 1 || ($this->limit !== null && count($this->items) >= $this->limit)) {
            throw new InvalidArgumentException("can't add {$count} of $name");
        }
        $this->items[$name] = ['price' => $price, 'count' => $count];
        return $this;
    }

    public function total(callable $discount = null): float
    {
        $sum = 0.0;
        foreach ($this->items as $name => $item) {
            $sum += $item['price'] * $item['count'];
        }
        return $discount ? $discount($sum) : round($sum, 2);
    }

    public function lines(): array
    {
        return array_map(
            fn (string $name): string => sprintf('%s: %.2f', $name, $this->items[$name]['price']),
            array_keys($this->items)
        );
    }
}

$cart = (new Cart())->add('tea', 3.5)->add('cups', 12, 4);
echo implode("\n", $cart->lines()), PHP_EOL;
