-- The rank of a record, 1 for the most popular: the inverse of the distribution, at :u. So the ranks
-- of a transaction fall as :u does. An integral takes the place of the sum of a Zipfian
-- distribution's probabilities, from the second one on (at 0.99 they are right within 3 %).
\if :hotspot > 0
\if :u <= :share / 100.0
\set rank 1 + int(:u * 100.0 / :share * :hot - 0.5)
\else
\set rank 1 + :hot + int((:u - :share / 100.0) / (1 - :share / 100.0) * (:records - :hot) - 0.5)
\endif
\else
\set theta CASE WHEN :zipfian = 1 THEN 0.999999 ELSE :zipfian END
\set from pow(1.5, 1 - :theta)
\set mass least(:u, 0.999999999999) * (1 + (pow(:records + 0.5, 1 - :theta) - :from) / (1 - :theta))
\set rank CASE WHEN :mass <= 1 THEN 1 ELSE int(pow((:mass - 1) * (1 - :theta) + :from, 1.0 / (1 - :theta))) END
\endif
\set rank greatest(1, least(:rank, :records))
