"""What a text lacks, told without a model: where its syntax is broken, what is still to be written."""
