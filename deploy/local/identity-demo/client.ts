/** What the platform is to the demo's identity service. */
export const DEMO_CLIENT = { id: 'content-platform', secret: 'demo-identity-secret' };
