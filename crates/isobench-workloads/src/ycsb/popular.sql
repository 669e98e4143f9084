-- The popular records are others after each :moves transactions of a client: as many as are in the
-- hot spot, or a hundredth of all.
\set hot greatest(1, :records * :hotspot / 100)
\set shift 0
--+moves \set shift (:transaction - 1) / :moves * CASE WHEN :hotspot > 0 THEN :hot ELSE greatest(1, :records / 100) END
