"""What everything else is said in: errors, the record of a case, devices, useful work, published figures."""
