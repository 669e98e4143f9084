# A shop with Rails, Active Record and Puma: puma -b tcp://127.0.0.1:8000 -t 3:3 config.ru
#
# /order reads the stock before its transaction, and writes it back. /order-locked locks the row first, by with_lock.
# /order-versioned compares lock_version, and answers 409 if it has changed.
ENV['RAILS_ENV'] = 'production'
require 'rails'
require 'active_record/railtie'
require 'action_controller/railtie'

class Shop < Rails::Application
  config.root = __dir__
  config.eager_load = false
  config.secret_key_base = 'of an example'
  config.logger = Logger.new($stderr, level: :warn)
  config.hosts.clear
  routes.append do
    get '/', to: 'orders#index'
    post '/order', to: 'orders#create'
    post '/order-locked', to: 'orders#locked'
    post '/order-versioned', to: 'orders#versioned'
  end
end

class Item < ActiveRecord::Base
  self.table_name = 'item'
end

class PlainItem < Item
  self.lock_optimistically = false
end

class Order < ActiveRecord::Base; end

class OrdersController < ActionController::API
  rescue_from(ActiveRecord::StaleObjectError) { render json: { error: 'try again' }, status: :conflict }

  def index
    render plain: "a shop\n"
  end

  def create
    item = PlainItem.find(1)
    PlainItem.transaction { take(item) }
  end

  def locked
    item = PlainItem.find(1)
    item.with_lock { take(item) }
  end

  def versioned
    item = Item.find(1)
    Item.transaction { take(item) }
  end

  private

  def take(item)
    return render json: { error: 'sold out' }, status: :conflict if item.stock < 1

    item.update!(stock: item.stock - 1)
    order = Order.create!(item: item.id)
    render json: { order: order.id, left: item.stock }
  end
end

ActiveRecord::Base.establish_connection(ENV.fetch('DATABASE_URL'))
Shop.initialize!
run Shop
