# Songs in an order.
require 'set'

module Music
  class Song < Struct.new(:title, :seconds)
    def to_s
      format('%s (%d:%02d)', title, seconds / 60, seconds % 60)
    end
  end

  class Playlist
    include Enumerable
    attr_reader :name

    def initialize(name, songs = [], shuffle: false)
      @name = name
      @songs = shuffle ? songs.shuffle : songs
    end

    def each(&block)
      return enum_for(:each) unless block_given?

      @songs.each(&block)
    end

    def add(song)
      if @songs.include?(song)
        warn "#{song} is there already"
      else
        @songs << song
      end
      self
    end

    def longest(limit = 3)
      sorted = @songs.sort_by { |song| -song.seconds }
      sorted.first(limit).map do |song|
        { title: song.title, length: song.seconds }
      end
    end

    def play
      @songs.each_with_index do |song, index|
        puts "#{index + 1}. #{song}"
      end
    rescue IOError => error
      puts "silence: #{error.message}"
    ensure
      @played = true
    end
  end
end
