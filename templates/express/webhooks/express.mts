import express from 'express';
import { Webhook } from 'standardwebhooks';

const { WEBHOOK_SECRET, PORT = '3000' } = process.env;
if (WEBHOOK_SECRET === undefined)
  throw new Error('set WEBHOOK_SECRET to the secret of the endpoint, `whsec_…`');
const webhook = new Webhook(WEBHOOK_SECRET);

interface CustosEvent {
  readonly type: string;
}

/** What your service does about an event. It runs once for each event, unless it throws. */
async function handle(event: CustosEvent): Promise<void> {
  console.log(event.type);
}

/** The latest events that were handled. Several processes need a table instead. */
const handled = new Set<string>();

export const app = express();

// The signature covers the bytes that arrived: they must not be parsed before.
app.post('/webhooks/custos', express.raw({ type: '*/*', limit: '1mb' }), async (request, response) => {
  const { 'webhook-id': id = '' } = request.headers as Record<string, string>;
  let event: CustosEvent;
  try {
    event = webhook.verify(request.body, request.headers as Record<string, string>) as CustosEvent;
  } catch {
    response.status(401).end();
    return;
  }
  if (!handled.has(id)) await handle(event);
  handled.add(id);
  if (handled.size > 10_000) handled.delete(handled.values().next().value as string);
  response.status(204).end();
});

export const server = app.listen(Number(PORT), () => {
  console.info(`listens on http://127.0.0.1:${PORT}/webhooks/custos`);
});
