# Races of public applications in Ruby, rebuilt small, with their fixes (races.txt): PORT=8000 ruby app.rb
require 'json'
require 'pg'
require 'socket'

POOL = Queue.new
3.times { POOL << PG.connect }

# ubicloud/ubicloud #6317: the oldest row is popped by a subquery; the second one to come finds it gone, and takes none.
def pop(lock)
  transaction do |connection|
    sql = "DELETE FROM cert WHERE id = (SELECT id FROM cert ORDER BY created LIMIT 1#{lock}) RETURNING id"
    found = connection.exec(sql).first or next [200, 'none is left']
    connection.exec_params('INSERT INTO used VALUES ($1)', [found['id']])
    [200, 'taken']
  end
end

def transaction
  connection = POOL.pop
  connection.transaction { |open| yield open }
ensure
  POOL << connection
end

PATHS = {
  '/pop' => -> { pop('') },
  '/pop-fixed' => -> { pop(' FOR UPDATE SKIP LOCKED') },
}.freeze

server = TCPServer.new('127.0.0.1', Integer(ENV.fetch('PORT')))
loop do
  Thread.new(server.accept) do |client|
    request = client.gets.to_s.split
    client.gets until $_.to_s.strip.empty?
    run = PATHS[request[1]]
    status, body = run ? run.call : [404, 'unknown']
    client.write("HTTP/1.1 #{status} .\r\nConnection: close\r\n\r\n#{JSON.generate(body)}")
  rescue PG::Error => e
    client.write("HTTP/1.1 500 .\r\nConnection: close\r\n\r\n#{JSON.generate(e.message)}")
  ensure
    client.close
  end
end
