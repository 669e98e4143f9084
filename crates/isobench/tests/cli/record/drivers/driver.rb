# What an application does, by Ruby's pg. Prints what the driver returned.
require 'pg'

connection = PG.connect
insert = 'INSERT INTO item (id, name, price) VALUES ($1, $2, $3)'
p connection.exec_params(insert, [7, "Ada's", '12.50']).cmd_tuples
connection.prepare('find', 'SELECT id, name, price FROM item WHERE id = $1 AND name = $2')
2.times { p connection.exec_prepared('find', [7, "Ada's"]).values }
connection.exec('BEGIN')
p connection.exec_params('UPDATE item SET price = price + $1', [1]).cmd_tuples
connection.exec('ROLLBACK')
begin
  connection.exec_params(insert, [7, "Ada's", '12.50'])
rescue PG::Error => e
  p e.result.error_field(PG::Result::PG_DIAG_SQLSTATE)
end
connection.transaction do |open|
  open.exec('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE')
  p open.exec('SELECT price FROM item').values
end
connection.close
