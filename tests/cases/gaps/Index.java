package search;

import java.util.*;
import java.util.function.Function;

public class Index<K extends Comparable<K>, V> {
    private final Map<K, List<Map.Entry<String, V>>> entries = new TreeMap<>();
    private static final char OPEN = '(', CLOSE = ')', QUOTE = '\'';

    @SuppressWarnings({"unchecked", "rawtypes"})
    public <R> List<R> map(Function<? super V, ? extends R> made) {
        List<R> out = new ArrayList<>();
        for (Map.Entry<K, List<Map.Entry<String, V>>> each : entries.entrySet())
            each.getValue().forEach(found -> out.add(made.apply(found.getValue())));
        return out.size() >= 2 ? out : Collections.emptyList();
    }

    String show(K key) {
        int half = entries.getOrDefault(key, List.of()).size() >>> 1;
        return String.format("%s (\"%d\")%c", key, half, half > 3 ? OPEN : CLOSE); // don't (yet
    }
}
