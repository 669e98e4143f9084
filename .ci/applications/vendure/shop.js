// A shop on Vendure: its settings, its tables, its customers.
//
//     shop.js setup             makes the tables, products with stock, and a promotion with a coupon
//     shop.js serve CUSTOMERS   so many customers order through the shop's API, a few of them at once
//
// The database is the one that PGHOST, PGPORT, PGUSER and PGDATABASE name, which pg reads itself. NODE_PATH has to name
// the folder that Vendure is in.
"use strict";
const fs = require("fs");
const net = require("net");
const os = require("os");
const path = require("path");
// Otherwise it tells its makers of each start, and leaves a file in the folder that it was started from.
process.env.VENDURE_DISABLE_TELEMETRY = "true";
const { DefaultLogger, LogLevel, bootstrap, dummyPaymentHandler, orderPercentageDiscount } = require("@vendure/core");
const { populate } = require("@vendure/core/cli");

const AT_ONCE = 4;
const COUPON = "SALE";
const PRODUCTS = ["Kettle", "Lamp", "Chair"];
// Nobody signs in but the program itself.
const ADMIN = { identifier: "admin", password: "of no secret" };

const freePort = () => new Promise((done) => {
    const one = net.createServer();
    one.listen(0, "127.0.0.1", () => {
        const { port } = one.address();
        one.close(() => done(port));
    });
});

const settings = (port, synchronize) => ({
    logger: new DefaultLogger({ level: LogLevel.Error }),
    apiOptions: { port, hostname: "127.0.0.1", adminApiPath: "admin-api", shopApiPath: "shop-api" },
    authOptions: { tokenMethod: "bearer", superadminCredentials: ADMIN },
    dbConnectionOptions: {
        type: "postgres",
        host: process.env.PGHOST,
        port: Number(process.env.PGPORT),
        username: process.env.PGUSER,
        database: process.env.PGDATABASE,
        synchronize,
        logging: ["error"],
    },
    paymentOptions: { paymentMethodHandlers: [dummyPaymentHandler] },
});

const DATA = {
    defaultLanguage: "en",
    defaultZone: "Europe",
    countries: [{ name: "Germany", code: "DE", zone: "Europe" }],
    taxRates: [{ name: "Standard Tax", percentage: 19 }],
    shippingMethods: [{ name: "Parcel", price: 500, taxRate: 19 }],
    paymentMethods: [{
        name: "Dummy",
        handler: { code: dummyPaymentHandler.code, arguments: [{ name: "automaticSettle", value: "true" }] },
    }],
    collections: [],
};

// Asks one of the APIs. A customer is known by the token that the first answer had.
async function ask(base, api, session, query, variables) {
    const headers = { "content-type": "application/json" };
    if (session.token) headers.authorization = `Bearer ${session.token}`;
    const body = JSON.stringify({ query, variables });
    const answer = await fetch(`${base}/${api}`, { method: "POST", headers, body });
    session.token = answer.headers.get("vendure-auth-token") || session.token;
    const { data, errors } = await answer.json();
    if (errors) throw new Error(`${query}: ${JSON.stringify(errors)}`);
    for (const result of Object.values(data)) {
        if (result && result.errorCode) throw new Error(`${query}: ${result.errorCode}: ${result.message}`);
    }
    return data;
}

async function setup() {
    const port = await freePort();
    const columns = ["name", "slug", "description", "assets", "facets", "optionGroups", "optionValues", "sku", "price",
        "taxCategory", "stockOnHand", "trackInventory", "variantAssets", "variantFacets"];
    const lines = PRODUCTS.map((name) => [name, name.toLowerCase(), name, "", "", "", "", name.toUpperCase(), "20.00",
        "standard", "100000", "true", "", ""]);
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "shop-"));
    const csv = path.join(folder, "products.csv");
    fs.writeFileSync(csv, [columns, ...lines].map((line) => line.join(",")).join("\n") + "\n");
    process.env.CREATING_VENDURE_APP = "true";
    const app = await populate(() => bootstrap(settings(port, true)), DATA, csv);
    fs.rmSync(folder, { recursive: true });
    const base = `http://127.0.0.1:${port}`;
    const admin = {};
    await ask(base, "admin-api", admin, `mutation ($user: String!, $password: String!) {
        login(username: $user, password: $password) { ... on ErrorResult { errorCode message } } }`,
        { user: ADMIN.identifier, password: ADMIN.password });
    await ask(base, "admin-api", admin, `mutation ($input: CreatePromotionInput!) {
        createPromotion(input: $input) { ... on ErrorResult { errorCode message } } }`, {
        input: {
            enabled: true,
            couponCode: COUPON,
            usageLimit: 10000,
            perCustomerUsageLimit: 2,
            conditions: [],
            actions: [{ code: orderPercentageDiscount.code, arguments: [{ name: "discount", value: "10" }] }],
            translations: [{ languageCode: "en", name: "a discount", description: "" }],
        },
    });
    await app.close();
    console.log(`${PRODUCTS.length} products, a coupon`);
}

const FAILED = "... on ErrorResult { errorCode message }";
const SHOWN = "... on Order { code state totalWithTax lines { quantity linePriceWithTax } }";

// A customer puts products into the basket, and pays. Every other one has the coupon.
async function order(base, number) {
    const customer = {};
    const shop = (query, variables) => ask(base, "shop-api", customer, query, variables);
    const { products } = await shop("{ products { items { id name variants { id priceWithTax stockLevel } } } }");
    const variants = products.items.map((item) => item.variants[0].id).sort();
    // All want the first product, and two of three another one.
    const wanted = [[variants[0], 1 + number % 2], [variants[1 + number % 2], 1]].slice(0, number % 3 ? 2 : 1);
    for (const [variant, quantity] of wanted) {
        await shop(`mutation ($variant: ID!, $quantity: Int!) {
            addItemToOrder(productVariantId: $variant, quantity: $quantity) { ${SHOWN} ${FAILED} } }`,
            { variant, quantity });
    }
    if (number % 2 === 0) {
        await shop(`mutation ($code: String!) { applyCouponCode(couponCode: $code) { ${SHOWN} ${FAILED} } }`,
            { code: COUPON });
    }
    await shop(`mutation ($input: CreateCustomerInput!) { setCustomerForOrder(input: $input) { ${SHOWN} ${FAILED} } }`,
        { input: { firstName: "A", lastName: "Customer", emailAddress: `c${number}@shop.test` } });
    await shop(`mutation ($input: CreateAddressInput!) {
        setOrderShippingAddress(input: $input) { ${SHOWN} ${FAILED} } }`,
        { input: { fullName: "A Customer", streetLine1: "A street 1", city: "A town", postalCode: "10115",
            countryCode: "DE" } });
    const { eligibleShippingMethods: ways } = await shop("{ eligibleShippingMethods { id priceWithTax } }");
    await shop(`mutation ($ways: [ID!]!) { setOrderShippingMethod(shippingMethodId: $ways) { ${SHOWN} ${FAILED} } }`,
        { ways: [ways[0].id] });
    await shop(`mutation { transitionOrderToState(state: "ArrangingPayment") { ${SHOWN} ${FAILED} } }`);
    const { addPaymentToOrder: placed } = await shop(`mutation ($input: PaymentInput!) {
        addPaymentToOrder(input: $input) { ${SHOWN} ${FAILED} } }`, { input: { method: "dummy", metadata: {} } });
    if (placed.state !== "PaymentSettled") throw new Error(`no order was placed: ${JSON.stringify(placed)}`);
    const { code } = placed;
    await shop("query ($code: String!) { orderByCode(code: $code) { code state totalWithTax } }", { code });
}

async function serve(customers) {
    const port = await freePort();
    const app = await bootstrap(settings(port, false));
    let next = 0;
    const come = async () => {
        while (next < customers) await order(`http://127.0.0.1:${port}`, next++);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, come));
    await app.close();
    console.log(`${customers} orders`);
}

const [task, customers] = process.argv.slice(2);
const tasks = { setup, serve: () => serve(Number(customers)) };
const work = tasks[task] ? tasks[task]() : Promise.reject("usage: shop.js setup, or shop.js serve CUSTOMERS");
work.then(() => process.exit(0), (error) => {
    console.error(error);
    process.exit(1);
});
