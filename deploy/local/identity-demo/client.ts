/** Client registration of the platform at the demo identity service. */
export const DEMO_CLIENT = { id: 'content-platform', secret: 'demo-identity-secret' };
