// A shop with Express and Sequelize: PORT=8000 node shop.js
//
// /order reads the stock and writes it back. /order-locked locks the row first. /order-retry runs at serializable, and
// again if PostgreSQL refuses it.
const express = require('express');
const { DataTypes, Sequelize, Transaction } = require('sequelize');

const database = new Sequelize(process.env.DATABASE_URL, { logging: false });
const plain = { timestamps: false };
const Item = database.define('item', { stock: DataTypes.INTEGER }, { ...plain, tableName: 'item' });
const Order = database.define('order', { item: DataTypes.INTEGER }, { ...plain, tableName: 'orders' });

const take = (lock, isolationLevel) => database.transaction({ isolationLevel }, async (transaction) => {
  const item = await Item.findByPk(1, { transaction, lock });
  if (item.stock < 1) return [409, { error: 'sold out' }];
  await item.update({ stock: item.stock - 1 }, { transaction });
  const order = await Order.create({ item: 1 }, { transaction });
  return [200, { order: order.id, left: item.stock }];
});

async function retried(attempts) {
  try {
    return await take(false, Transaction.ISOLATION_LEVELS.SERIALIZABLE);
  } catch (error) {
    if (error.parent?.code !== '40001' || attempts === 0) throw error;
    return retried(attempts - 1);
  }
}

const application = express();
const answer = (run) => async (request, response) => {
  const [status, body] = await run().catch((error) => [500, { error: error.message }]);
  response.status(status).json(body);
};
application.get('/', (request, response) => response.send('a shop\n'));
application.post('/order', answer(() => take(false)));
application.post('/order-locked', answer(() => take(Transaction.LOCK.UPDATE)));
application.post('/order-retry', answer(() => retried(5)));
application.listen(Number(process.env.PORT));
