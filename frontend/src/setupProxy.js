const { createProxyMiddleware } = require('http-proxy-middleware');

module.exports = (app) =>
  app.use(createProxyMiddleware('/api', { target: process.env.STREAMJOIN_HOST ?? 'http://127.0.0.1:8000', ws: true }));
