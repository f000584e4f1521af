"""Text as files and people have it: cursor markers, line ends, files read and written without loss."""
