"""The family `masked`: coders with mask tokens and full attention in both directions."""
