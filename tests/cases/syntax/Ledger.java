package shop.books;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** What was bought and sold. */
public final class Ledger implements AutoCloseable {
    private static final int LIMIT = 1_000;
    private final List<Entry> entries = new ArrayList<>();
    private boolean closed;

    public record Entry(String account, long cents) {
    }

    @FunctionalInterface
    interface Filter {
        boolean keeps(Entry entry);
    }

    public void book(String account, long cents) throws IllegalStateException {
        if (closed || entries.size() >= LIMIT) {
            throw new IllegalStateException("no room for " + account);
        }
        entries.add(new Entry(account, cents));
    }

    public Map<String, Long> totals(Filter filter) {
        return entries.stream()
                .filter(filter::keeps)
                .collect(Collectors.groupingBy(Entry::account, Collectors.summingLong(Entry::cents)));
    }

    public String describe(int width) {
        StringBuilder text = new StringBuilder();
        for (Entry entry : entries) {
            char sign = entry.cents() < 0 ? '-' : '+';
            text.append(sign).append(String.format("%" + width + "d%n", Math.abs(entry.cents())));
        }
        try {
            return text.toString().strip();
        } finally {
            text.setLength(0);
        }
    }

    @Override
    public void close() {
        closed = true;
    }
}
