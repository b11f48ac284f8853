"""What every part of a node needs: clients, what leaves in a turn, schedules, tables, totals."""
