-- The lists in use are divided into as many parts as there are operations, one for each operation.
\set part :lists / :operations
\set list1 random(1, :part)
\set append1 random(1, 100) <= :appends
\set list2 random(1, :part) + 1 * :part
\set append2 random(1, 100) <= :appends
\set list3 random(1, :part) + 2 * :part
\set append3 random(1, 100) <= :appends
\set list4 random(1, :part) + 3 * :part
\set append4 random(1, 100) <= :appends
\set list5 random(1, :part) + 4 * :part
\set append5 random(1, 100) <= :appends
\set list6 random(1, :part) + 5 * :part
\set append6 random(1, 100) <= :appends
\set list7 random(1, :part) + 6 * :part
\set append7 random(1, 100) <= :appends
\set list8 random(1, :part) + 7 * :part
\set append8 random(1, 100) <= :appends
BEGIN;
-- Lists are replaced after a number of turns, so that each one gets about as many elements as
-- requested and stays short.
SELECT nextval('lists_turns') AS turn
\gset
\set epoch :turn * :operations * :appends / 100 / (:lists * :elements)
\set number :epoch * :lists + :list1
-- A number between two fillers, far from the other numbers in use.
\set list1 permute(:number, 20000) * 1000 + 10 + :number / 20000
\if :append1
\set element :attempt_id * 8 + 0
--@ append lists key=:list1 element=:element
INSERT INTO lists (id, elements) VALUES (:list1, CAST(:element AS text)) ON CONFLICT (id) DO UPDATE SET elements = lists.elements || ',' || excluded.elements;
\else
--@ read-list lists key=:list1 elements=$1
SELECT elements FROM lists WHERE id = :list1;
\endif
\if :operations >= 2
\set number :epoch * :lists + :list2
-- A number between two fillers, far from the other numbers in use.
\set list2 permute(:number, 20000) * 1000 + 10 + :number / 20000
\if :append2
\set element :attempt_id * 8 + 1
--@ append lists key=:list2 element=:element
INSERT INTO lists (id, elements) VALUES (:list2, CAST(:element AS text)) ON CONFLICT (id) DO UPDATE SET elements = lists.elements || ',' || excluded.elements;
\else
--@ read-list lists key=:list2 elements=$1
SELECT elements FROM lists WHERE id = :list2;
\endif
\endif
\if :operations >= 3
\set number :epoch * :lists + :list3
-- A number between two fillers, far from the other numbers in use.
\set list3 permute(:number, 20000) * 1000 + 10 + :number / 20000
\if :append3
\set element :attempt_id * 8 + 2
--@ append lists key=:list3 element=:element
INSERT INTO lists (id, elements) VALUES (:list3, CAST(:element AS text)) ON CONFLICT (id) DO UPDATE SET elements = lists.elements || ',' || excluded.elements;
\else
--@ read-list lists key=:list3 elements=$1
SELECT elements FROM lists WHERE id = :list3;
\endif
\endif
\if :operations >= 4
\set number :epoch * :lists + :list4
-- A number between two fillers, far from the other numbers in use.
\set list4 permute(:number, 20000) * 1000 + 10 + :number / 20000
\if :append4
\set element :attempt_id * 8 + 3
--@ append lists key=:list4 element=:element
INSERT INTO lists (id, elements) VALUES (:list4, CAST(:element AS text)) ON CONFLICT (id) DO UPDATE SET elements = lists.elements || ',' || excluded.elements;
\else
--@ read-list lists key=:list4 elements=$1
SELECT elements FROM lists WHERE id = :list4;
\endif
\endif
\if :operations >= 5
\set number :epoch * :lists + :list5
-- A number between two fillers, far from the other numbers in use.
\set list5 permute(:number, 20000) * 1000 + 10 + :number / 20000
\if :append5
\set element :attempt_id * 8 + 4
--@ append lists key=:list5 element=:element
INSERT INTO lists (id, elements) VALUES (:list5, CAST(:element AS text)) ON CONFLICT (id) DO UPDATE SET elements = lists.elements || ',' || excluded.elements;
\else
--@ read-list lists key=:list5 elements=$1
SELECT elements FROM lists WHERE id = :list5;
\endif
\endif
\if :operations >= 6
\set number :epoch * :lists + :list6
-- A number between two fillers, far from the other numbers in use.
\set list6 permute(:number, 20000) * 1000 + 10 + :number / 20000
\if :append6
\set element :attempt_id * 8 + 5
--@ append lists key=:list6 element=:element
INSERT INTO lists (id, elements) VALUES (:list6, CAST(:element AS text)) ON CONFLICT (id) DO UPDATE SET elements = lists.elements || ',' || excluded.elements;
\else
--@ read-list lists key=:list6 elements=$1
SELECT elements FROM lists WHERE id = :list6;
\endif
\endif
\if :operations >= 7
\set number :epoch * :lists + :list7
-- A number between two fillers, far from the other numbers in use.
\set list7 permute(:number, 20000) * 1000 + 10 + :number / 20000
\if :append7
\set element :attempt_id * 8 + 6
--@ append lists key=:list7 element=:element
INSERT INTO lists (id, elements) VALUES (:list7, CAST(:element AS text)) ON CONFLICT (id) DO UPDATE SET elements = lists.elements || ',' || excluded.elements;
\else
--@ read-list lists key=:list7 elements=$1
SELECT elements FROM lists WHERE id = :list7;
\endif
\endif
\if :operations >= 8
\set number :epoch * :lists + :list8
-- A number between two fillers, far from the other numbers in use.
\set list8 permute(:number, 20000) * 1000 + 10 + :number / 20000
\if :append8
\set element :attempt_id * 8 + 7
--@ append lists key=:list8 element=:element
INSERT INTO lists (id, elements) VALUES (:list8, CAST(:element AS text)) ON CONFLICT (id) DO UPDATE SET elements = lists.elements || ',' || excluded.elements;
\else
--@ read-list lists key=:list8 elements=$1
SELECT elements FROM lists WHERE id = :list8;
\endif
\endif
-- The first list again: it has the transaction's own appends, or is unchanged.
--@ read-list lists key=:list1 elements=$1
SELECT elements FROM lists WHERE id = :list1;
COMMIT;
