require 'set'

module Shop
  class Order
    attr_reader :lines, :state
    TOTAL = /\A\((\d+)\)\s*(['"])?/

    def initialize(lines = [], state: :open)
      @lines, @state = lines.to_set, state
    end

    def total(&block)
      lines.map { |line| block ? block.call(line) : line[:price] * line.fetch(:count, 1) }.sum
    end

    def to_s
      names = lines.map { |l| "#{l[:name]} (#{l[:count] > 1 ? 'many' : "one"})" }
      "Order: #{names.join(', ')} => #{total}" if names.size >= 1
    end

    def parse(text)
      return nil unless text =~ /[)\]]/
      text.scan(TOTAL) { |found| @lines << { name: found[0], price: Hash.new { |h, k| h[k] = [] } } }
      puts %w[a b], 'it\'s done', :"quoted name" # isn't (always
    end
  end
end
