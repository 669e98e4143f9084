\set number 1 + (:rank - 1 + :shift) % :records
\set id :number * 2654435761 % 4294967296
