// URLs are relative to the page, /api/docs.
globalThis.SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#api',
  deepLinking: true,
  // Otherwise the document's URL is sent to a validator on the internet.
  validatorUrl: null,
});
